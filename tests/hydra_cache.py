"""fairseq's configuration in half the time, for tests that run hundreds of commands in one process.

For each command, fairseq composes its configuration from about 250 overrides, nearly all of them defaults, which takes
half a second. Here, hydra parses each override once, joins the same dataclasses once, and does not copy its unchanged
list of sources.
"""

from __future__ import annotations

import copy
import functools

from fairseq import options
from fairseq.dataclass.utils import override_module_args
from hydra._internal import config_repository
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig


def remember_overrides() -> None:
    """Makes hydra remember the overrides that it has parsed in this process."""
    parse = OverridesParser.parse_rule
    parsed = functools.cache(lambda text, rule: parse(OverridesParser.create(), text, rule))
    OverridesParser.parse_rule = lambda self, text, rule: copy.copy(parsed(text, rule))

    def share(self: object, delegate: object) -> None:
        self.delegate, self.cache = delegate, {}

    # hydra 1.0 has no such class and copies nothing.
    if hasattr(config_repository, "CachingConfigRepository"):
        config_repository.CachingConfigRepository.__init__ = share
        _remember_compositions()


def _remember_compositions() -> None:
    """Makes hydra remember what the same dataclasses of options give together, before any override."""
    compose, composed = ConfigLoaderImpl._compose_config_from_defaults_list, {}

    def remembered(self: ConfigLoaderImpl, defaults: list, repo: object) -> DictConfig:
        key = tuple((default.config_path, default.package) for default in defaults)
        if key not in composed:
            composed[key] = compose(self, defaults, repo)
        return copy.deepcopy(composed[key])

    ConfigLoaderImpl._compose_config_from_defaults_list = remembered


def parse_defaults() -> None:
    """Parses the defaults of training and generation, so that forks of this process know them."""
    for parser in (options.get_training_parser(), options.get_generation_parser()):
        arguments, _ = parser.parse_known_args(["data", "--task", "translation"])
        OverridesParser.create().parse_overrides(override_module_args(arguments)[0])
