# Models of the classification recipes: flags by architecture. A recipe may set TREE_TRANSFORMER, TREE_LSTM, TRANSFORMER,
# LSTM, TREEFORMER and TRAINING anew; sizes come with the architectures.

# Nguyen et al. (2020): d = 64, 4 heads, 2 layers. The paper leaves the rest open; the authors' released script for SST has
# learning rate 7e-4, warm-up, dropout 0.1 and no weight decay.
TREE_TRANSFORMER=(--dropout 0.1)
TREE_LSTM=(--dropout 0.1)
TRANSFORMER=(--dropout 0.1)
LSTM=(--dropout 0.1)
TREEFORMER=(--dropout 0.1)
TRAINING=(
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 10
    --lr 7e-4 --lr-scheduler inverse_sqrt --warmup-updates 4000 --warmup-init-lr 1e-7
    --criterion tree_classification
)
# Tokens a batch (or BATCH_SIZE texts), and the longest text: of a longer one, the sentences are read that end within it
BATCH_TOKENS=2000 BATCH_SIZE='' DEVICE_TOKENS=2000 POSITIONS=1024
LIMITS=(--max-update 15000)

# --toy: the same flags with sizes that train in seconds on one core
TOY_TRANSFORMER=(--encoder-layers 1 --encoder-embed-dim 16 --encoder-ffn-embed-dim 16 --encoder-attention-heads 2)
TOY_LSTM=(--encoder-embed-dim 16 --encoder-hidden-size 16)
TOY_TREEFORMER=("${TOY_TRANSFORMER[@]}")
TOY_LIMITS=(--max-epoch 2 --max-update 8 --warmup-updates 2)

# model_flags ARCH: MODEL
model_flags() {
    case $1 in
        tree_transformer_classifier*)
            MODEL=("${TREE_TRANSFORMER[@]}")
            if [ -n "$TOY" ]; then MODEL+=("${TOY_TRANSFORMER[@]}"); fi
            ;;
        tree_lstm_classifier*)
            MODEL=("${TREE_LSTM[@]}")
            if [ -n "$TOY" ]; then MODEL+=("${TOY_LSTM[@]}"); fi
            ;;
        transformer_classifier*)
            MODEL=("${TRANSFORMER[@]}")
            if [ -n "$TOY" ]; then MODEL+=("${TOY_TRANSFORMER[@]}"); fi
            ;;
        treeformer_classifier*)
            MODEL=("${TREEFORMER[@]}")
            if [ -n "$TOY" ]; then MODEL+=("${TOY_TREEFORMER[@]}"); fi
            ;;
        lstm_classifier*)
            MODEL=("${LSTM[@]}")
            if [ -n "$TOY" ]; then MODEL+=("${TOY_LSTM[@]}"); fi
            ;;
        *)
            die "no settings for --arch $1: give a tree_transformer_classifier*, tree_lstm_classifier*, treeformer_classifier*," \
                "transformer_classifier* or lstm_classifier* architecture"
            ;;
    esac
}
