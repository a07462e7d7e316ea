#!/usr/bin/env bash
# Makes the explorer's demo of questions to SQL again: a database, text, three models, their scores, and what the page shows.
#
#   examples/explorer_demo/train.sh OUT
#
# It takes about 40 minutes on one core. OUT/demo has what lies in tree_fairseq/explorer/demo/archipelago, and OUT/records.json.gz is
# tree_fairseq/explorer/demo/records.json.gz, without the tab of translations.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1" && cd "$1"
export PYTHONPATH=$ROOT OMP_NUM_THREADS=1
PLUGIN=(--user-dir "$ROOT/tree_fairseq")

python "$ROOT/examples/explorer_demo/archipelago.py" --database archipelago.sqlite --out text
SPLITS=(-s en -t sql --trainpref text/train --validpref text/valid --testpref text/test,text/test1)
fairseq-preprocess "${PLUGIN[@]}" "${SPLITS[@]}" --destdir trees --target-modality tree --target-notation sql:sqlite --leaf-merges 200
fairseq-preprocess "${PLUGIN[@]}" "${SPLITS[@]}" --destdir words --learn-subwords 800

SIZES=(--encoder-layers 2 --encoder-embed-dim 80 --encoder-ffn-embed-dim 160 --encoder-attention-heads 4 --decoder-layers 2
    --decoder-embed-dim 80 --decoder-ffn-embed-dim 160 --decoder-attention-heads 4 --share-decoder-input-output-embed --dropout 0.1)
TRAINING=(--criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1
    --lr 3e-3 --lr-scheduler inverse_sqrt --warmup-updates 400 --max-tokens 2500 --max-epoch 10 --seed 1 --keep-last-epochs 3
    --no-progress-bar --log-interval 100 --required-batch-size-multiple 1)
GENERATE=(--beam 5 --max-len-a 0 --max-len-b 150 --batch-size 64 --required-batch-size-multiple 1)
GRAMMAR=(--grammar language --schema archipelago.sqlite)
train() { # NAME DATA TASK ARCH...
    fairseq-train "$2" "${PLUGIN[@]}" --task "$3" --arch "${@:4}" "${SIZES[@]}" "${TRAINING[@]}" --save-dir "$1" --log-file "$1.log"
    tree-fairseq average "$1" --last-epochs 3 --output "$1/average.pt"
    tree-fairseq release "$2" "$1/average.pt" --output "demo/$1" --dtype float16
}
evaluate() { # NAME DATA TASK FLAGS...; test has questions as in training, test1 has more conditions than any of training
    for subset in test test1; do
        fairseq-generate "$2" "${PLUGIN[@]}" --task "$3" --path "demo/$1/model.safetensors" --gen-subset "$subset" "${GENERATE[@]}" \
            --results-path "outputs/$1" "${@:4}"
    done
    tree-fairseq score sql --run "outputs/$1" --sets test= test1=longer --references text --target-lang sql --notation sql:sqlite \
        --database archipelago.sqlite
}
train with_positions trees structural_translation tree_positional_transformer_tiny --query-position
train without_positions trees structural_translation transformer_tiny
train as_text words translation transformer_tiny
evaluate with_positions trees structural_translation "${GRAMMAR[@]}"
evaluate without_positions trees structural_translation "${GRAMMAR[@]}"
evaluate as_text words translation --remove-bpe

rm demo/with{,out}_positions/grammar.sql.txt # of --grammar data
cp archipelago.sqlite demo/
python "$ROOT/examples/explorer_demo/records.py" --demo demo --text text --scores outputs --output records.json.gz
