"""From parallel text to trees, two trained models, translations, BLEU and a picture, in a few minutes on two cores.

``run.sh`` beside this file runs it; ``--help`` lists the options.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
USAGE = """usage: {script} [options]

  --data DIR         your own parallel text: train.SRC, train.TGT and, if you have them, valid.* and test.*; without it
                     a small English-German corpus is made from a grammar
  --out DIR          everything that is written (out/quickstart, or out/quickstart-NAME for data in a folder NAME)
  --source LANG      source language of your text, the one that is parsed (en where there is one)
  --target LANG      target language of your text
  --parser-dir DIR   folder of a Stanza model for your text; without it Stanza downloads its own
  --subset N         the first N pairs of your train
  --updates N        training updates of each model (600)
  --distance-bias B  the learned bias on the encoder's attention by distance: linear, tree or both (both), and the
                     transformer beside it has one by linear distance; none: neither has one
  --toy              tiny sizes, to see that everything runs
"""
SECONDS_BETWEEN_LINES = 10
OPTIONS = ("data", "out", "source", "target", "parser-dir", "subset", "updates", "distance-bias")
LOSS = re.compile(r"\| train_inner \|.* loss=([\d.]*),.*num_updates=(\d*),")
TRAINING = """
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam --adam-betas '(0.9, 0.98)'
    --lr 4e-3 --lr-scheduler inverse_sqrt --warmup-updates 200 --clip-norm 1.0 --max-tokens 2000 --max-update {updates}
    --seed 1 --required-batch-size-multiple 1
"""


TYPED = "the man saw the girl with the telescope."


class Failure(Exception):
    """A command that failed; its log says why."""


class UsageError(Exception):
    """Options that cannot be read."""


def read_options(arguments: list[str]) -> dict[str, str]:
    """The options by name.

    Raises:
        UsageError: one is unknown, or has no value
    """
    found, words = {}, list(arguments)
    while words:
        word = words.pop(0)
        if word in ("--help", "-h", "--toy"):
            found["toy" if word == "--toy" else "help"] = "1"
            continue
        if word[2:] not in OPTIONS or not word.startswith("--"):
            raise UsageError(f"unknown option {word}")
        if not words:
            raise UsageError(f"{word} needs a value")
        found[word[2:]] = words.pop(0)
    if found.get("distance-bias", "both") not in ("none", "linear", "tree", "both"):
        raise UsageError(f"--distance-bias {found['distance-bias']}: give none, linear, tree or both")
    return found


class Line:
    """One line that changes in a terminal; elsewhere a new line every ten seconds."""

    def __init__(self) -> None:
        self.shown, self.next = "", time.monotonic() + SECONDS_BETWEEN_LINES

    def show(self, text: Callable[[], str]) -> None:
        """Shows a text, which is made only if it is time for it."""
        if sys.stdout.isatty():
            before, self.shown = self.shown, text()
            print(f"\r{self.shown.ljust(len(before))}", end="", flush=True)
        elif time.monotonic() >= self.next:
            print(text(), flush=True)
            self.next = time.monotonic() + SECONDS_BETWEEN_LINES

    def end(self) -> None:
        """Begins a new line in a terminal."""
        if self.shown:
            print(flush=True)
            self.shown = ""


def time_left(seconds: float, done: int, all_of_it: int) -> str:
    """Minutes and seconds that the rest takes at the same speed."""
    minutes, rest = divmod(round(seconds * (all_of_it - done) / done), 60)
    return f"{minutes}:{rest:02d}"


class Quickstart:
    """One run in its folder."""

    def __init__(self, options: dict[str, str]) -> None:
        self.start = time.monotonic()
        self.options, self.toy = options, "toy" in options
        paths = {name: os.path.abspath(options[name]) for name in ("data", "out", "parser-dir") if name in options}
        self.data, self.parser_dir = paths.get("data", ""), paths.get("parser-dir", "")
        name = f"quickstart-{Path(self.data).name}" if self.data else "quickstart"
        self.out = Path(paths.get("out") or ROOT / "out" / name)
        self.logs = self.out / "logs"
        self.source, self.target = "en", "de"
        self.training: list[subprocess.Popen] = []

    def say(self, text: str) -> None:
        """Prints a line with the seconds since the start."""
        print(f"[{int(time.monotonic() - self.start):3d} s] {text}", flush=True)

    def run(self, name: str, command: list[str], announce: bool = True, output: Path | None = None) -> None:
        """Runs a command whose output goes to a log, or its standard output to a file.

        Raises:
            Failure: it failed
        """
        log = self.logs / f"{name}.log"
        if announce:
            self.say(" ".join(command))
        with open(log, "ab") as stream, open(output or os.devnull, "wb") as lines:
            done = subprocess.run(command, stdout=lines if output else stream, stderr=stream)
        self.check(done.returncode, log)

    def check(self, status: int, log: Path) -> None:
        """Shows the end of a log where its command failed.

        Raises:
            Failure: it failed
        """
        if status:
            self.say(f"failed; the end of {log}:")
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            raise Failure("\n".join(lines[-20:]))

    def main(self) -> None:
        """The whole course."""
        # What an earlier run left is made again; its parses are kept.
        for name in ("words", "data-bin", "tree_transformer", "transformer", "logs"):
            shutil.rmtree(self.out / name, ignore_errors=True)
        self.logs.mkdir(parents=True)
        parser = self.write_words()
        self.show_pairs()
        self.preprocess(parser)
        self.train()
        self.translate()
        self.translate_typed()

    def write_words(self) -> list[str]:
        """Tokenised splits, of the grammar's corpus or of somebody's text; returns the flags of the parser."""
        words = str(self.out / "words")
        if not self.data:
            sizes = ["--train", "200", "--valid", "20", "--test", "20"] if self.toy else []
            self.run("corpus", ["python", "-m", "preprocess.english_german", "--out", words, *sizes])
            return ["--tree-parser", "stanza", "--parser-dir", self.parser_dir or "examples/quickstart/stanza-en"]
        self.say(f"python -m preprocess.own_text {self.data} --out {words}")
        given = [(f"--{name}", self.options[name]) for name in ("source", "target", "subset") if name in self.options]
        flags = [word for pair in given for word in pair]
        command = ["python", "-m", "preprocess.own_text", self.data, "--out", words, *flags]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise Failure("")
        self.source, self.target = done.stdout.split()
        return ["--tree-parser", "stanza", *(["--parser-dir", self.parser_dir] if self.parser_dir else [])]

    def lines(self, language: str) -> list[str]:
        """The lines of the training text."""
        return (self.out / "words" / f"train.{language}").read_text(encoding="utf-8").split("\n")[:-1]

    def show_pairs(self) -> None:
        """Prints how many pairs there are, and two of them."""
        sides = self.lines(self.source), self.lines(self.target)
        self.say(f"{len(sides[0])} pairs; for example:")
        for pair in list(zip(*sides))[:2]:
            for line in pair:
                print(f"          {line}", flush=True)

    def preprocess(self, parser: list[str]) -> None:
        """Splits words into subwords, learnt on both languages, parses the source side, and writes the folder that both
        models read; its progress is shown."""
        words, merges = self.out / "words", "200" if self.toy else "8000" if self.data else "2500"
        command = ["fairseq-preprocess", "--user-dir", "tree_fairseq", "--task", "tree_translation"]
        command += ["-s", self.source, "-t", self.target]
        command += ["--trainpref", f"{words}/train", "--validpref", f"{words}/valid", "--testpref", f"{words}/test"]
        command += ["--tokenizer", "moses", "--moses-no-dash-splits", "--learn-subwords", merges]
        command += ["--destdir", str(self.out / "data-bin"), "--joined-dictionary", "--workers", "2", *parser]
        command += ["--tree-lang", self.source, "--parse-cache", str(self.out / "parses")]
        self.say(" ".join(command))
        log = self.logs / "preprocess.log"
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with open(log, "wb") as stream:
            for line in process.stdout:
                stream.write(line)
                if b"Namespace(" not in line:
                    sys.stdout.buffer.write(line)
                    sys.stdout.flush()
        self.check(process.wait(), log)

    def train(self) -> None:
        """Trains both models at the same time, and shows how far they are."""
        updates = "6" if self.toy else self.options.get("updates", "600")
        width, inner, interval = (16, 16, 2) if self.toy else (128, 256, 10)
        size = "--encoder-layers 2 --decoder-layers 2 --encoder-attention-heads 4 --decoder-attention-heads 4".split()
        for name, value in (("embed", width), ("ffn-embed", inner)):
            size += [f"--encoder-{name}-dim", str(value), f"--decoder-{name}-dim", str(value)]
        size += ["--share-all-embeddings", "--dropout", "0.1"]
        training = shlex.split(TRAINING.format(updates=updates))
        saving = [
            "--no-epoch-checkpoints",
            "--no-progress-bar",
            "--log-format",
            "simple",
            "--log-interval",
            str(interval),
        ]
        begin = ["fairseq-train", str(self.out / "data-bin"), "--user-dir", "tree_fairseq", "--task"]
        models = {
            "tree_transformer": [*begin, "tree_translation", "--arch", "tree_transformer_tiny"],
            "transformer": [*begin, "translation", "--arch", "transformer"],
        }
        bias = self.options.get("distance-bias", "both")
        if bias != "none":
            models["tree_transformer"] += ["--distance-bias", bias]
            models["transformer"][-1:] = ["transformer_distance_bias", "--distance-bias", "linear"]
        self.say(" ".join([*models["tree_transformer"], *size, *training]))
        self.say(" ".join(models["transformer"]) + ", the rest as above")
        running = {}
        for name, command in models.items():
            with open(self.logs / f"{name}.log", "wb") as log:
                command = [*command, *size, *training, *saving, "--save-dir", str(self.out / name)]
                running[name] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        self.training = list(running.values())
        line, start = Line(), time.monotonic()
        while running:
            time.sleep(2)
            for name, process in list(running.items()):
                if process.poll() is not None:
                    line.end()
                    self.check(process.returncode, self.logs / f"{name}.log")
                    del running[name]
            line.show(lambda: self.progress(list(models), int(updates), time.monotonic() - start))
        line.end()

    def progress(self, names: list[str], updates: int, seconds: float) -> str:
        """How far the trainings are after so many seconds, and how long the slower one still takes."""
        found = {name: self.state(name) for name in names}
        least = min(done for done, _ in found.values())
        left = f", about {time_left(seconds, least, updates)} left" if least else ""
        parts = [f"{name} {done} of {updates} updates, loss {loss}" for name, (done, loss) in found.items() if done]
        return "; ".join(parts or ["the trainings start"]) + left

    def state(self, name: str) -> tuple[int, str]:
        """The last update of a log, 0 before the first, and its loss."""
        found = LOSS.findall((self.logs / f"{name}.log").read_text(encoding="utf-8", errors="replace"))
        return (int(found[-1][1]), found[-1][0]) if found else (0, "")

    def translate(self) -> None:
        """Translates the test set with both models and reports."""
        for name, task in (("tree_transformer", "tree_translation"), ("transformer", "translation")):
            # Without a multiple of 1, fairseq drops the sentences that are left over when it fills batches of eight.
            # The stock model has --user-dir, too: torch refuses fairseq's checkpoints until the plugin has allowed what
            # is in them.
            command = ["fairseq-generate", str(self.out / "data-bin"), "--user-dir", "tree_fairseq", "--task", task]
            command += ["--path", str(self.out / name / "checkpoint_best.pt"), "--beam", "5", "--remove-bpe"]
            # After so few updates a model may repeat a phrase to the end; two such outputs of 500 cost five BLEU.
            command += ["--max-len-a", "1.5", "--max-len-b", "10"]
            command += ["--max-tokens", "4000", "--required-batch-size-multiple", "1"]
            self.run(f"generate-{name}", [*command, "--results-path", str(self.out / name)])
        sides = ["--source", self.source, "--target", self.target]
        subprocess.run(["python", "examples/quickstart/report.py", "--out", str(self.out), *sides], check=True)

    def translate_typed(self) -> None:
        """Translates a sentence as a person types it: the folder knows how to tokenise, split and parse it."""
        typed = TYPED
        if self.data:
            typed = (self.out / "words" / f"test.{self.source}").read_text(encoding="utf-8").partition("\n")[0]
            typed = re.sub(r" ([.,;:?!])(?= |$)", r"\1", typed)
        command = ["fairseq-interactive", str(self.out / "data-bin"), "--user-dir", "tree_fairseq"]
        command += ["--task", "tree_translation", "--path", str(self.out / "tree_transformer" / "checkpoint_best.pt")]
        command += ["--beam", "5"]
        print()
        self.say(f"echo {shlex.quote(typed)} | {' '.join(command)}")
        output, log = self.logs / "typed.out", self.logs / "typed.log"
        with open(output, "wb") as lines, open(log, "wb") as stream:
            done = subprocess.run(command, input=f"{typed}\n".encode(), stdout=lines, stderr=stream)
        self.check(done.returncode, log)
        found = re.search(r"^D-0\t[^\t]*\t(.*)$", output.read_text(encoding="utf-8"), re.MULTILINE)
        print(f"          {found[1] if found else ''}", flush=True)
        self.say("done; type sentences of your own into the same command")


def prepare_environment() -> None:
    """One thread a process, as two of them train at a time; no GPU, so that the output is the same everywhere."""
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    if (ROOT / ".venv" / "bin").is_dir() and not shutil.which("fairseq-train"):
        os.environ["PATH"] = os.pathsep.join([str(ROOT / ".venv" / "bin"), os.environ["PATH"]])


def main(script: str, arguments: list[str]) -> int:
    """Command line; returns the exit status."""
    try:
        options = read_options(arguments)
    except UsageError as error:
        sys.stderr.write(f"{USAGE.format(script=script)}{error}\n")
        return 2
    if "help" in options:
        print(USAGE.format(script=script), end="")
        return 0
    quickstart = Quickstart(options)  # its paths are relative to where it was called
    os.chdir(ROOT)
    prepare_environment()
    try:
        quickstart.main()
    except (Failure, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"{error}\n" if str(error) else "")
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        for process in quickstart.training:
            if process.poll() is None:
                process.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
