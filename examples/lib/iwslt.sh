# Settings of the four IWSLT recipes. Nguyen et al. (2020): 60K updates of 4K tokens with d = 512; what the paper leaves open
# is as in the authors' released commands (attention dropout 0.2, weight decay, warm-up, averaging of 10, beam 5).

# Trees: a line of a talk may hold several sentences, each gets a tree of its own
SENTENCES=punct

# Model: 6+6 layers, d = 512, ffn 1024, 4 heads come with the architecture
TRANSFORMER=(--share-all-embeddings --dropout 0.3 --attention-dropout 0.2)

# Optimisation
ADAM=(
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 0 --weight-decay 1e-4
    --lr 5e-4 --lr-scheduler inverse_sqrt --warmup-updates 4000 --warmup-init-lr 1e-7 --stop-min-lr 1e-9
)
BATCH_TOKENS=4096 DEVICE_TOKENS=4096
LIMITS=(--max-update 60000)

# Generation, from the average of the last epochs
AVERAGE=10 BEAM=5 LENPEN=1 GENERATE_TOKENS=2048

# Scores: the paper reports BLEU on tokens
DEFAULT_ARCH=tree_transformer_iwslt_de_en
PRIMARY=tokenized_bleu
SETS=(test=)
SCORE_FLAGS=(--lowercase)
LENGTH_BOUNDS=(10 20 30 40 50)
