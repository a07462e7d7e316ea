"""Translation from sentences with constituency trees."""

from dataclasses import dataclass

from fairseq.tasks import register_task

from tree_fairseq.nn.sides import CONSTITUENCY
from tree_fairseq.nn.tasks import TranslationWithTreesConfig, TranslationWithTreesTask


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeTranslationConfig(TranslationWithTreesConfig):
    """fairseq's translation options and those of trees."""


@register_task("tree_translation", dataclass=TreeTranslationConfig)
class TreeTranslationTask(TranslationWithTreesTask):
    """Translates sentences whose trees ``fairseq-preprocess --tree-parser …`` wrote beside them.

    Models that read no trees (stock architectures) train on the same folder under this task too.

    Args:
        cfg (TreeTranslationConfig): options
        src_dict: source dictionary
        tgt_dict: target dictionary
    """

    cfg: TreeTranslationConfig
    source_modalities = (CONSTITUENCY,)
