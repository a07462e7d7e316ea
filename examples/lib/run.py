"""Runs the recipe of a folder, as its ``run.sh`` does: ``python examples/lib/run.py examples/NAME [options]``.

The folder's ``recipe.ini`` says what the recipe is. ``--setting NAME`` or ``--arch NAME*`` takes another file,
``NAME.ini``, where the folder has one. ``--help`` lists the options.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from recipe_file import LIBRARY, RecipeError, Settings, check_names, read_sections, setting_name
from runner import Runner, comparisons, extra_suffix, key_of
from stages import batch_flags

ROOT = LIBRARY.parent.parent
COMMON = """
  --data DIR = the data set, see README.md of the recipe ({data_note})
  --out DIR = everything that is written, result.json among it
  --toy = tiny sizes, to see that everything runs
  --dry-run = print the commands, run none
"""


class UsageError(RecipeError):
    """Options that the recipe does not have, or that lack what they need: the usage is printed, too."""


def recipe_path(folder: Path, arguments: list[str]) -> Path:
    """The recipe file that these arguments ask for."""
    words = arguments[: arguments.index("--")] if "--" in arguments else arguments
    pairs = list(zip(words, words[1:]))
    for path in sorted(folder.glob("*.ini")):
        name = path.stem
        if ("--setting", name) in pairs or any(a == "--arch" and b.startswith(name) for a, b in pairs):
            return path
    return folder / "recipe.ini"


def read_options(names: dict[str, str], arguments: list[str]) -> dict[str, str | list[str]]:
    """The options by name; ``extra`` has what comes after ``--``.

    Raises:
        UsageError: an option is unknown, or has no value
    """
    given: dict[str, str | list[str]] = {"extra": []}
    words = list(arguments)
    while words:
        word = words.pop(0)
        if word == "--":
            given["extra"] = words
            break
        if word in ("--toy", "--dry-run", "--help", "-h"):
            given["help" if word in ("--help", "-h") else setting_name(word)] = "1"
            continue
        if not word.startswith("--") or setting_name(word) not in names:
            raise UsageError(f"unknown option {word}")
        if not words:
            raise UsageError(f"{word} needs a value")
        given[setting_name(word)] = words.pop(0)
    return given


def usage(settings: Settings, script: str) -> str:
    """What ``--help`` prints."""
    generated = settings.text("generated")
    note = settings.prose("generated") if generated else "with --toy: made up where it is not given"
    rows = [line.strip().partition(" = ") for line in COMMON.format(data_note=note).strip().splitlines()]
    own = [(option, "", settings.fill(text)) for option, text in settings.options.values() if text]
    needed = " ".join(["--data DIR --out DIR", *settings.words("needed_options")])
    lines = [f"usage: {script} {needed} [options] [-- flags of fairseq-train]", ""]
    for option, _, text in [*rows[:2], *own, *rows[2:]]:
        head = f"  {option:<20}"
        fits = len(option) < 20
        lines += [] if fits else [head.rstrip()]
        for line in _wrapped(" ".join(text.split()), 98):
            lines.append((head if fits else " " * 22) + line)
            head = " " * 22
    return "\n".join(lines) + "\n"


def _wrapped(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


def check(settings: Settings, checks: dict[str, str]) -> None:
    """Looks at the values of the options.

    Raises:
        RecipeError: one of them is not what the option needs
    """
    for name, rule in checks.items():
        value = settings.text(name)
        if not value:
            continue
        if rule.startswith("one of "):
            choices = settings.expand(rule[len("one of ") :])
            if value not in choices:
                listed = " ".join(choices) or "none, there is nothing to choose here"
                raise RecipeError(f"--{name.replace('_', '-')} {value}: give {listed}")
        else:
            pattern, _, message = rule.partition(": ")
            if not re.fullmatch(pattern, value):
                raise RecipeError(settings.fill(message))
    if settings.text("seeds") and settings.text("seed"):
        raise RecipeError("give --seed or --seeds, not both")
    architectures = [pattern for section in settings.sections for pattern in section.architectures]
    patterns = list(dict.fromkeys(architectures))
    if not any(re.fullmatch(pattern.replace("*", ".*"), settings.text("arch")) for pattern in patterns):
        *most, last = patterns
        raise RecipeError(
            f"no settings for --arch {settings.text('arch')}: give a {', '.join(most)} or {last} architecture"
        )
    if settings.raw("refuse"):
        raise RecipeError(settings.prose("refuse"))
    if settings.text("stage") in comparisons(settings) and settings.raw("refuse_last"):
        raise RecipeError(settings.prose("refuse_last"))


def places(settings: Settings, given: dict) -> dict:
    """The options with absolute paths; the output folder is made.

    Raises:
        RecipeError: a folder or a file that is given is not there
    """
    out = Path(given["out"])
    out.mkdir(parents=True, exist_ok=True)
    found = {**given, "out": os.path.abspath(out)}
    data = settings.text("data")
    if not data and not settings.text("generated"):
        data = str(out / "toy-data")
    if data:
        try:
            Path(data).mkdir(parents=True, exist_ok=True)
        except OSError:
            raise RecipeError(f"--data {data}: no such folder") from None
        found["data"] = data = os.path.abspath(data)
        if f"{found['out']}/".startswith(f"{data}/"):
            raise RecipeError("--out lies in --data; give it a folder of its own")
    for name, (option, _) in settings.options.items():
        value, metavar = settings.text(name), option.partition(" ")[2]
        if not value or metavar not in ("DIR", "P,P,...", "DIR|NAME"):
            continue
        if metavar == "P,P,...":
            missing = [path for path in value.split(",") if not Path(path).exists()]
            if missing:
                raise RecipeError(f"--{name.replace('_', '-')}: there is no {missing[0]}")
            found[name] = [str(Path(path).resolve()) for path in value.split(",")]
        elif Path(value).is_dir():
            found[name] = os.path.abspath(value)
        elif metavar == "DIR":
            raise RecipeError(f"--{name.replace('_', '-')}: no such folder")
    return found


def encoder_name(settings: Settings) -> list[str]:
    """A pretrained encoder's name on the hub, or the name of its folder with a digest of its files."""
    path = Path(settings.text("encoder_path"))
    if not path.is_dir():
        return [str(path).replace("/", "-")]
    return [f"{path.name}-{key_of(settings, '{encoder_path}/*.json {encoder_path}/*.safetensors')[:8]}"]


def recorded_parser(settings: Settings) -> list[str]:
    """The parser that a run began with, or the one that it would begin with."""
    file = Path(settings.text("run")) / "parser"
    return [file.read_text(encoding="utf-8").strip()] if file.is_file() else settings.words("tree_parser")


def members(settings: Settings) -> list[str]:
    """The seeds of an ensemble."""
    return [seed for seed in settings.text("ensemble").split(",") if seed]


def member_checkpoints(settings: Settings) -> list[str]:
    """The checkpoints of an ensemble, one of each seed."""
    alone = settings.at(ensemble="", beam="")
    return [f"{Runner.at_seed(alone, seed).text('run')}/checkpoints/average.pt" for seed in members(settings)]


COMPUTED = {
    "batch": lambda s: batch_flags(int(s.text("batch_size")), int(s.text("device_batch_size")), s.text("batch_unit")),
    "encoder_name": encoder_name,
    "ensemble_path": lambda s: [":".join(member_checkpoints(s))],
    "first_member": lambda s: member_checkpoints(s)[:1],
    "member_checkpoints": member_checkpoints,
    "members": members,
    "recorded_parser": recorded_parser,
    "set_names": lambda s: [word.partition("=")[0] for word in s.words("sets")],
    "test_prefixes": lambda s: [",".join(s.at(set=name).text("test_prefix") for name in s.words("test_sets"))],
    "train_digest": lambda s: [key_of(s, s.raw("train_key"))],
}

RUN_SETTINGS = (
    "data out toy extra run run_seed variant variant_flags others main_run rows plain_run ranking_run".split()
)
"""Settings that come from the command line or are different for every run."""


def settings_of(folder: Path, arguments: list[str], script: str) -> tuple[Settings, dict]:
    """The settings of a recipe under these arguments, and the arguments that were given."""
    sections = read_sections(recipe_path(folder, arguments))
    given = {
        "root": str(ROOT),
        "lib": str(LIBRARY),
        "recipe": folder.resolve().name,
        "workers": str(os.cpu_count() or 1),
    }
    check_names(sections, [*given, *COMPUTED, *RUN_SETTINGS])
    settings = Settings(sections, given, COMPUTED)
    try:
        options = read_options({**settings.options, "data": "", "out": ""}, arguments)
        settings = settings.at(**options, extra_suffix=extra_suffix(options["extra"]))
        if "help" in options:
            return settings, options
        if "out" not in options:
            raise UsageError("--out is needed")
        if not any(settings.text(name) for name in ("data", "toy", "generated")):
            raise UsageError("--data is needed")
        if settings.text("stage") not in settings.words("stages") + settings.words("own_stages"):
            raise UsageError(f"unknown stage {settings.text('stage')}")
    except UsageError:
        sys.stderr.write(usage(settings, script))
        raise
    checks: dict[str, str] = {}
    for section in sections:
        checks.update(section.values if section.title == "checks" else {})
    check(settings, checks)
    return settings.at(**places(settings, settings.given)), options


def main(folder: Path, arguments: list[str]) -> int:
    """Command line of a recipe; returns the exit status."""
    script = os.path.join(folder, "run.sh")
    name = folder.resolve().name
    options: dict[str, str] = {}
    try:
        settings, options = settings_of(folder, arguments, script)
        if "help" in options:
            sys.stdout.write(usage(settings, script))
            return 0
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        if not shutil.which("fairseq-train") and (ROOT / ".venv" / "bin").is_dir():
            os.environ["PATH"] = os.pathsep.join([str(ROOT / ".venv" / "bin"), os.environ["PATH"]])
        runner = Runner(settings, bool(options.get("dry_run")))
        require_module(settings, runner)
        runner.main()
    except RecipeError as error:
        sys.stdout.flush()
        sys.stderr.write(f"[{name}] error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader, such as head, has seen enough. What is buffered must not be written at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        only_printing = options.get("dry_run") or "help" in options
        return 0 if only_printing else 128 + signal.SIGPIPE
    return 0


def require_module(settings: Settings, runner: Runner) -> None:
    """Looks for a package that scores need, before hours of training and not after them."""
    module = settings.text("scores_need_module")
    if not module or runner.stages.dry_run or not runner.reached("score"):
        return
    if subprocess.run(["python", "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode:
        raise RecipeError(settings.prose("module_missing"))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
