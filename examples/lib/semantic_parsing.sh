# Settings of the recipes GEO, JOBS and ATIS: questions to logical forms, Shiv & Quirk's semantic parser (NeurIPS 2019, Table 1).

# Data: a question, a tree; rarer words of the question are unknown, as in the paper
SOURCE=nl TARGET=lf
SOURCE_NOTATION='' TARGET_NOTATION=bracket
THRESHOLD_SOURCE=2

# Model: 4+4 layers, d = 256, ffn 1024, positions of 2048 come with the architecture
DEFAULT_ARCH=tree_positional_transformer_semantic_parsing

# Optimisation: 128 examples a batch; average of the last 10 of the checkpoints of every tenth epoch
LIMITS=(--max-epoch 500)
SAVE_INTERVAL=10

# Scores: the order of what stands under and/or is free, as in the literature
PRIMARY=accuracy_unordered
