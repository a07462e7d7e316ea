# Settings by architecture. A recipe sets TRANSFORMER (tree and stock transformers alike) and ADAM; the two convolutional
# baselines of the paper's Table 1 have defaults here, from the papers that introduced them and fairseq's commands for them.

# Gehring et al. (2017): Nesterov's gradient, learning rate cut when validation stalls, clipping, no shared embeddings
FCONV=(--dropout 0.2)
FCONV_OPTIMIZER=(--optimizer nag --momentum 0.99 --lr 0.25 --clip-norm 0.1 --lr-scheduler reduce_lr_on_plateau --lr-shrink 0.1)

# Wu et al. (2019): dynamic convolutions (not lightweight ones), without gated linear units; the optimiser is ADAM
LIGHTCONV=(
    --encoder-conv-type dynamic --decoder-conv-type dynamic --encoder-glu 0 --decoder-glu 0
    --dropout 0.3 --attention-dropout 0.1 --weight-dropout 0.1
)

# --toy: the same flags with sizes that train in seconds on one core
TOY_TRANSFORMER=(
    --encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 16 --decoder-embed-dim 16
    --encoder-ffn-embed-dim 16 --decoder-ffn-embed-dim 16 --encoder-attention-heads 2 --decoder-attention-heads 2
)
TOY_LIGHTCONV=("${TOY_TRANSFORMER[@]}" --encoder-kernel-size-list '[3]' --decoder-kernel-size-list '[3]')
TOY_FCONV=(
    --encoder-layers '[(16, 3)]' --decoder-layers '[(16, 3)]'
    --encoder-embed-dim 16 --decoder-embed-dim 16 --decoder-out-embed-dim 16
)
TOY_LIMITS=(--max-epoch 2 --max-update 8 --warmup-updates 2 --required-batch-size-multiple 1)

# model_flags ARCH: MODEL and OPTIMIZER for an architecture
model_flags() {
    case $1 in
        tree_transformer* | transformer*)
            MODEL=("${TRANSFORMER[@]}") OPTIMIZER=("${ADAM[@]}")
            if [ -n "$TOY" ]; then MODEL+=("${TOY_TRANSFORMER[@]}"); fi
            ;;
        lightconv*)
            MODEL=("${LIGHTCONV[@]}") OPTIMIZER=("${ADAM[@]}")
            if [ -n "$TOY" ]; then MODEL+=("${TOY_LIGHTCONV[@]}"); fi
            ;;
        fconv*)
            MODEL=("${FCONV[@]}") OPTIMIZER=("${FCONV_OPTIMIZER[@]}")
            if [ -n "$TOY" ]; then MODEL+=("${TOY_FCONV[@]}"); fi
            ;;
        *) die "no settings for --arch $1: give a tree_transformer*, transformer*, fconv* or lightconv* architecture" ;;
    esac
}
