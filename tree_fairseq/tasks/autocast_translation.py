"""fairseq's translation for models that read no trees, in bfloat16 on CPUs: for baselines of tree models that train so."""

from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationTask

from tree_fairseq.tasks.translation_with_trees import TranslationWithTreesConfig
from tree_fairseq.tasks.tree_task import TreeTask


@register_task("autocast_translation", dataclass=TranslationWithTreesConfig)
class AutocastTranslationTask(TreeTask, TranslationTask):
    """The stock task with ``--cpu-autocast``. Any folder of fairseq's will do, and checkpoints generate under ``--task translation``."""

    cfg: TranslationWithTreesConfig
    reading_flag = "reads_trees"
