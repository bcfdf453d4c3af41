#!/bin/bash
# 96 blocks on 8 nodes
TP=8
GPT_ARGS=(
    --num-layers 96 --hidden-size 12288
    --num-attention-heads 96   # heads
    --seq-length 2048
)
torchrun --nproc_per_node 8 --nnodes=16 pretrain_gpt.py ${GPT_ARGS[@]} \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size 8 --sequence-parallel \
    --num-layers-per-virtual-pipeline-stage 4 --micro-batch-size 1 --global-batch-size 256 \
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --recompute-activations \
    --bf16 --lr 6.0e-5 --data-path $DATA --use-nothing-of-this
