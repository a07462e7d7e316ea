"""``fairseq-preprocess --parts N``: a training text in N folders, ``DESTDIR/0``, ``DESTDIR/1``, ..., for one training.

fairseq-train reads one of the folders in each epoch, so that no more than its trees are in memory, and the command
needs disk space for one part at a time.
"""

from __future__ import annotations

import itertools
import json
import logging
import shutil
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from tree_fairseq.data_bin.manifest import MANIFEST_NAME
from tree_fairseq.errors import DestinationExistsError, InputError
from tree_fairseq.preprocessing.plan import INDIFFERENT
from tree_fairseq.support.files import atomic_file, read_json, write_json
from tree_fairseq.trees.text import CHUNK_LINES, inspect_text, require_parallel

logger = logging.getLogger(__name__)

RECORD = "parts.json"
# Parts after the first take over how its text was prepared.
_OF_TEXT = {"tokenizer": None, "bpe": None, "bpe_codes": None, "sentencepiece_model": None, "learn_subwords": None}
_FIRST_ONLY = {"validpref": None, "testpref": None, "moses_no_dash_splits": False, **_OF_TEXT}


def preprocess_in_parts(args: Namespace, lacks_trees: bool, preprocess: Callable[[Namespace], None]) -> None:
    """Preprocesses ``--parts`` equal parts of the training text; parts that are complete stay as they are.

    The dictionaries, labels and subword model of the first part, which has the other splits, too, are those of all.
    Arguments that do not change the files may differ when a stopped command is given again. Raises InputError if the
    arguments do not go together, or the text has fewer lines than parts; DestinationExistsError if the destination has
    parts of another command, or of a text that was changed.
    """
    destination = Path(args.destdir)
    if lacks_trees or args.parts < 1 or not args.trainpref or args.dict_only or args.alignfile:
        problem = "--parts N cuts --trainpref into N folders with trees, for --task tree_translation and such"
        raise InputError(
            problem, hint="Give --trainpref and a parser or a notation, without --dict-only or --alignfile."
        )
    suffixes = [args.source_lang, *([] if args.only_source else [args.target_lang])]
    if args.align_suffix and Path(f"{args.trainpref}.{args.align_suffix}").exists():
        suffixes.append(args.align_suffix)
    texts = {suffix: inspect_text(f"{args.trainpref}.{suffix}") for suffix in suffixes}
    require_parallel(list(texts.values()))
    lines = texts[args.source_lang].lines
    if lines < args.parts:
        raise InputError(f"--parts {args.parts} of a text of {lines} lines", hint="Give fewer parts.")
    arguments = {name: value for name, value in vars(args).items() if name not in INDIFFERENT}
    _keep_record(
        destination, {"arguments": arguments, "train": {suffix: text.sha256 for suffix, text in texts.items()}}
    )
    folders = [destination / str(number) for number in range(args.parts)]
    for number, folder in enumerate(folders):
        first, last = (lines * bound // args.parts for bound in (number, number + 1))
        if (folder / MANIFEST_NAME).exists():
            logger.info("[trees] part %d of %d is complete: %s", number + 1, args.parts, folder)
            continue
        cut = destination / f"{number}.text"
        cut.mkdir(exist_ok=True)
        where = "[trees] part %d of %d: lines %d to %d of %s are the lines of %s"
        logger.info(where, number + 1, args.parts, first + 1, last, args.trainpref, cut / "train")
        for suffix, text in texts.items():
            chunk = text.chunks[first // CHUNK_LINES]
            before = chunk.first_line - 1
            with open(text.path, "rb") as file, atomic_file(cut / f"train.{suffix}", "wb") as written:
                file.seek(chunk.start)
                written.writelines(itertools.islice(file, first - before, last - before))
        own = {"parts": None, "trainpref": str(cut / "train"), "destdir": str(folder)}
        if number:  # the dictionaries are those of the first part
            own |= {**_FIRST_ONLY, "srcdict": str(folders[0] / f"dict.{args.source_lang}.txt"), "tgtdict": None}
            if not (args.only_source or args.joined_dictionary):
                own["tgtdict"] = str(folders[0] / f"dict.{args.target_lang}.txt")
        preprocess(Namespace(**{**vars(args), **own}))
        shutil.rmtree(cut)
    logger.info("[trees] all parts are complete: fairseq-train %s", ":".join(map(str, folders)))


def _keep_record(destination: Path, command: dict) -> None:
    """Writes which command makes the parts, or compares it with that of an earlier attempt."""
    command = json.loads(json.dumps(command, default=str))
    known = read_json(destination / RECORD)
    if known is None and destination.exists() and any(destination.iterdir()):
        raise DestinationExistsError(f"{destination} has files that are no parts: choose another --destdir")
    if known not in (None, command):
        problem = f"{destination} has the parts of another command, or the text has changed since"
        raise DestinationExistsError(f"{problem}: choose another --destdir, or remove this one")
    destination.mkdir(parents=True, exist_ok=True)
    write_json(destination / RECORD, command)
