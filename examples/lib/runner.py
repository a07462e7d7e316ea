"""The course of a recipe: from data to scores, for the system that was asked for and for what it is compared with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from glob import glob
from pathlib import Path

from recipe_file import LIBRARY, RecipeError, Settings, setting_name
from stages import Stages, fingerprint

LENGTH_FLAGS = ("--max-epoch", "--max-update", "--stop-time-hours", "--log-interval")
"""Flags of fairseq-train that do not make another run: longer training goes on in the same folder."""
_ROW = re.compile(r"(?:([a-z0-9{}_-]+): )?(.*)")


def key_of(settings: Settings, names: str) -> str:
    """The key of a stage, from a list of what it depends on.

    ``name`` is the text of a setting and ``name*`` each of its words; what has a slash or braces is a file, a folder or
    a pattern of file names.
    """
    arguments = []
    for name in names.split():
        if name.startswith("{") or "/" in name:
            for word in settings.expand(name):
                arguments += (sorted(glob(word)) or [word]) if word.endswith("*") else [word]
        elif name.endswith("*"):
            arguments += [f"={word}" for word in settings.words(name[:-1])]
        else:
            arguments.append(f"={settings.text(name)}")
    return fingerprint(arguments)


def extra_suffix(extra: Sequence[str]) -> str:
    """What flags after ``--`` add to the name of a run: nothing, or a digest of those that make another model."""
    kept, words = [], list(extra)
    while words:
        if words[0] in LENGTH_FLAGS:
            del words[:2]
        else:
            kept.append(f"={words.pop(0)}")
    return f"+{fingerprint(kept)[:8]}" if kept else ""


def others_scored(settings: Settings, run: Path) -> list[str]:
    """The runs to compare a run with: whole models of the same seed and extra flags that are scored already."""
    ending = re.escape(settings.text("ending") + settings.text("extra_suffix"))
    wanted = re.compile(settings.text("compared_names") + ending)
    files = sorted(run.parent.glob(f"*/{settings.text('compared_file')}"))
    return [str(file.parent) for file in files if wanted.fullmatch(file.parent.name) and file.parent != run]


def comparisons(settings: Settings) -> list[str]:
    """The stages after the scores, each of which compares other systems with the one that was asked for."""
    stages = settings.words("stages")
    return stages[stages.index("score") + 1 :]


class Runner:
    """One recipe with its options: what ``run.sh`` does."""

    def __init__(self, settings: Settings, dry_run: bool) -> None:
        self.settings = settings
        self.stages = Stages(settings.text("recipe"), Path(settings.text("work")), dry_run)
        self.order = settings.words("stages")
        self.asked = settings.text("stage")
        default = "1" if "seed" in settings.options else ""
        self.seeds = (settings.text("seeds") or settings.text("seed") or default).split(",")

    def reached(self, stage: str) -> bool:
        """Whether ``--stage`` asks for that stage."""
        return self.order.index(stage) <= self.order.index(self.asked)

    def run_all(self, settings: Settings, name: str) -> None:
        """Runs the commands of a setting."""
        for words in settings.commands(name):
            self.stages.run(words)

    def main(self) -> None:
        """Runs everything up to the stage that was asked for."""
        settings = self.settings
        self.get_data()
        if self.asked not in self.order:  # a stage of its own, such as bounds
            self.run_all(settings, self.asked)
        else:
            self.stages.stage(
                "prepare",
                lambda: key_of(settings, settings.raw("prepare_key")),
                lambda: self.run_all(settings, "prepare"),
            )
            if self.reached("preprocess"):
                self.main_run = self.at_seed(settings, self.seeds[0]).text("run")
                self.systems_and_comparisons()
        self.stages.say(f"done: {self.asked}")

    def get_data(self) -> None:
        """Fetches, or makes up, what an empty data folder is to hold."""
        settings, folder = self.settings, self.settings.text("data")
        unfinished = Path(folder) / ".unfinished"  # stays where this is interrupted
        if settings.text("generated") or not unfinished.is_file() and any(Path(folder).iterdir()):
            return
        if not settings.text("toy") and not settings.text("fetch"):
            raise RecipeError(f"{folder} is empty; the README says where its files come from")
        if settings.text("toy") and not settings.text("dataset"):
            raise RecipeError("--toy makes up no data for this recipe; give --data")
        self.stages.run(["touch", str(unfinished)])
        if settings.text("toy"):
            self.stages.run(["python", "-m", "preprocess.toy_corpus", settings.text("dataset"), "--output", folder])
        else:
            self.stages.run(["python", "-m", "preprocess.fetch", settings.text("fetch"), "--output", folder])
        self.stages.run(["rm", str(unfinished)])

    def systems_and_comparisons(self) -> None:
        """The system that was asked for and, with a stage after the scores, its ablations, controls or sweep."""
        main = self.systems(self.settings)
        self.means(main)
        last = self.asked
        if last not in comparisons(self.settings):
            return
        rows = [run for settings in self.rows(last) for run in self.systems(settings)]
        if last == "sweep":
            self.run_all(self.settings.at(rows=rows), "sweep_table")
        self.means(main)  # every run that is scored writes the result anew

    def rows(self, last: str) -> list[Settings]:
        """The systems of the last stage, from its lines: ``[name:] flags``; options of the recipe change the recipe."""
        found = []
        for scope, line in self.settings.lines(last):
            name, flags = _ROW.fullmatch(line).groups()
            options, own = {}, []
            words = iter(scope.expand(flags))
            for word in words:
                option = setting_name(word)
                if word.startswith("--") and option in scope.options:
                    options[option] = self.other(next(words), scope.words(option))
                else:
                    own.append(word)
            # An ablation that changes nothing is left out; a sweep compares the system as it is, too.
            if last == "sweep" or own or any(value != scope.text(option) for option, value in options.items()):
                found.append(self.variant(self.settings.at(comparing=last, **options), scope.fill(name or ""), own))
        return found

    @staticmethod
    def other(choices: str, current: Sequence[str]) -> str:
        """Of choices separated by ``|``, the first that is not the current one."""
        return next((choice for choice in choices.split("|") if choice != " ".join(current)), choices)

    def variant(self, settings: Settings, name: str, flags: list[str]) -> Settings:
        """The recipe with a name and flags of its own; a switch that the recipe has already is left out instead."""
        if not name:
            return settings
        model, extra = settings.words("model"), settings.words("extra")
        if flags and "|" in flags[-1]:
            present = [*model, *extra]
            places = [index for index, word in enumerate(present[:-1]) if word == flags[0]]
            flags = [flags[0], self.other(flags[1], present[places[-1] + 1 :][:1] if places else [])]
            name = f"{name}-{flags[1]}"
        elif len(flags) == 1 and flags[0] in [*model, *extra]:
            name = f"no-{name}"
            settings = settings.at(
                model=[word for word in model if word != flags[0]], extra=[word for word in extra if word != flags[0]]
            )
            flags = []
        return settings.at(variant=f"-{name}", variant_flags=flags)

    def systems(self, settings: Settings) -> list[str]:
        """The same model with every seed; returns the runs."""
        return [self.system(self.at_seed(settings, seed)) for seed in self.seeds]

    @staticmethod
    def at_seed(settings: Settings, seed: str) -> Settings:
        """The settings of one run."""
        settings = settings.at(run_seed=seed)
        return settings.at(
            run=f"{settings.text('work')}/runs/{settings.text('run_name')}{settings.text('extra_suffix')}"
        )

    def system(self, settings: Settings) -> str:
        """One system through all stages that were asked for; returns its run."""
        run = Path(settings.text("run"))
        read = self.read_by(settings)
        for model in read.values() or [settings]:
            self.train(model)
        settings = settings.at(**{f"{name}_run": model.text("run") for name, model in read.items()})
        if self.reached("generate"):
            self.stage_of("generate", settings)
        if self.reached("score"):
            self.run_all(settings.at(others=self.others(settings, run), main_run=self.main_run), "score")
        return str(run)

    def read_by(self, settings: Settings) -> dict[str, Settings]:
        """The trained models that a system reads instead of one of its own, from lines ``name: options`` of ``reads``.

        Commands find their runs in ``{name_run}``. A model has the seed of the system, or its own ``--seed``. Flags
        after ``--`` are for models of the architecture that was asked for alone.
        """
        found = {}
        for scope, line in settings.lines("reads"):
            name, options = _ROW.fullmatch(line).groups()
            words = iter(scope.expand(options))
            given: dict = {setting_name(option): next(words) for option in words}
            if given.get("arch") != settings.text("arch"):
                given.update(extra=[], extra_suffix="")
            found[scope.fill(name)] = self.at_seed(settings.at(**given), given.get("seed", settings.text("run_seed")))
        return found

    def train(self, settings: Settings) -> None:
        """Prepares the data of one model and trains it, as far as that was asked for."""
        self.stages.stage(
            f"preprocess{settings.text('suffix')}",
            lambda: key_of(settings, settings.raw("preprocess_key")),
            lambda: self.preprocess(settings),
        )
        if self.reached("train"):
            self.same_data(settings, Path(settings.text("run")))
            self.stage_of("train", settings)

    def stage_of(self, stage: str, settings: Settings) -> None:
        """A stage of one run."""
        name = f"{stage}-{Path(settings.text('run')).name}"
        self.stages.stage(
            name, lambda: key_of(settings, settings.raw(f"{stage}_key")), lambda: self.run_all(settings, stage)
        )

    def preprocess(self, settings: Settings) -> None:
        """Runs the stage of that name.

        Raises:
            RecipeError: files that were to be given are not
        """
        if settings.raw("refuse_preprocess"):
            raise RecipeError(settings.prose("refuse_preprocess"))
        files = [word for scope, line in settings.lines("needed_files") for word in scope.expand(line)]
        missing = [file for file in files if not Path(file).is_file()]
        if missing and not self.stages.dry_run:
            raise RecipeError(f"{missing[0]} is missing. {settings.prose('missing_files')}".strip())
        self.run_all(settings, "preprocess")

    def others(self, settings: Settings, run: Path) -> list[str]:
        """The runs to compare with: the full model for an ablation, otherwise other models."""
        full = self.at_seed(self.settings, settings.text("run_seed")).text("run")
        if settings.text("comparing") and settings.text("compare_rows") == "no":
            return []
        return [full] if settings.text("comparing") and full != str(run) else others_scored(settings, run)

    def same_data(self, settings: Settings, run: Path) -> None:
        """Writes the key of a run's data when it begins; it goes on with that data alone.

        A run whose folder was removed begins anew.
        """
        if self.stages.dry_run:
            return
        key = run / "data-key"
        now = key_of(settings, "{data_bin}/dict.* {data_bin}/train.*")
        run.mkdir(parents=True, exist_ok=True)
        if not key.is_file():
            self.stages.forget(f"train-{run.name}")
            self.stages.forget(f"generate-{run.name}")
            if settings.text("record_parser"):
                (run / "parser").write_text(settings.text("tree_parser") + "\n", encoding="utf-8")
            key.write_text(now + "\n", encoding="utf-8")
        elif key.read_text(encoding="utf-8").strip() != now:
            raise RecipeError(f"{run} was trained on other data; give another --out, or delete that folder")

    def means(self, runs: Sequence[str]) -> None:
        """Puts the means over several seeds into the result."""
        if self.reached("score") and len(runs) > 1:
            result = f"{self.settings.text('out')}/result.json"
            self.stages.run(["python", str(LIBRARY / "mean_of_seeds.py"), "--result", result, *runs])
