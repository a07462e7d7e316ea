"""Trees on disk and in batches: arrays beside fairseq's token files, bound together by ``tree.json``."""
