# Models of the structural recipes: flags by architecture. A recipe sets TREE (models that read symbol trees), TRANSFORMER
# (stock transformers) and TRAINING; sizes come with the architectures.

# Shiv & Quirk (2019): Adam, 128 examples, gradients clipped at 10. The learning rate, its schedule and label smoothing
# are not in the paper, nor are the decays that positions start with; these are ours. With those of the authors' code,
# positions tell little but the last three steps apart at first, and training is slower (active_logical/README.md).
TREE=(--dropout 0.1 --tree-decay-init uniform)
TRANSFORMER=(--dropout 0.1)
TRAINING=(
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 10
    --lr 1e-3 --lr-scheduler inverse_sqrt --warmup-updates 500
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1
)
BATCH_SIZE=128 DEVICE_BATCH_SIZE=128

# fairseq's lstm at the transformers' width, bidirectional source
LSTM=(
    --encoder-embed-dim 256 --encoder-hidden-size 256 --encoder-bidirectional --encoder-layers 1
    --decoder-embed-dim 256 --decoder-hidden-size 256 --decoder-out-embed-dim 256 --decoder-layers 1 --dropout 0.2
)

# --toy: the same flags with sizes that train in seconds on one core
TOY_TRANSFORMER=(
    --encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 16 --decoder-embed-dim 16
    --encoder-ffn-embed-dim 16 --decoder-ffn-embed-dim 16 --encoder-attention-heads 2 --decoder-attention-heads 2
)
TOY_TREE=("${TOY_TRANSFORMER[@]}" --tree-levels 4 --tree-position-dim 256)
TOY_LSTM=(
    --encoder-embed-dim 16 --encoder-hidden-size 16 --decoder-embed-dim 16 --decoder-hidden-size 16 --decoder-out-embed-dim 16
)
TOY_TREE_LSTM=(--encoder-embed-dim 16 --decoder-embed-dim 16 --hidden-size 16)
TOY_LIMITS=(--max-epoch 2 --max-update 8 --warmup-updates 2)

# model_flags ARCH: MODEL, and TASK, under which it reads trees or nothing but the sequences of their symbols
model_flags() {
    TASK=translation
    case $1 in
        tree_positional_transformer*)
            TASK=structural_translation MODEL=("${TREE[@]}")
            if [ -n "$TOY" ]; then MODEL+=("${TOY_TREE[@]}"); fi
            ;;
        tree_to_tree_lstm*) # its sizes and dropout, those of Chen et al. (2018), come with the architecture
            TASK=structural_translation MODEL=()
            if [ -n "$TOY" ]; then MODEL+=("${TOY_TREE_LSTM[@]}"); fi
            ;;
        transformer*)
            MODEL=("${TRANSFORMER[@]}")
            if [ -n "$TOY" ]; then MODEL+=("${TOY_TRANSFORMER[@]}"); fi
            ;;
        lstm*)
            MODEL=("${LSTM[@]}")
            if [ -n "$TOY" ]; then MODEL+=("${TOY_LSTM[@]}"); fi
            ;;
        *) die "no settings for --arch $1: give a tree_positional_transformer*, tree_to_tree_lstm*, transformer* or lstm* architecture" ;;
    esac
}
