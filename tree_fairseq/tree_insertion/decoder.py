"""Decoder over the nodes of partial trees (Lukovnikov & Fischer 2021, section 3.2)."""

from __future__ import annotations

from typing import Optional

import torch
from fairseq.models.transformer import Embedding, TransformerDecoderBase
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.errors import InputError
from tree_fairseq.nn.encoders import encoder_of
from tree_fairseq.nn.shared_memory import cross_attention_options
from tree_fairseq.tree_insertion.memory import Memory
from tree_fairseq.tree_insertion.relations import PreorderTrees, TreeRelationAttention, TreeRelations, structure_tokens
from tree_fairseq.tree_insertion.slots import ANCESTOR, DESCENDANT, FIRST_CHILD, IN_TREE, KINDS, NEXT_SIBLING

# FROM modules/insertion_slots: The insertion slots of partial trees as vectors of the nodes beside them (Lukovnikov & Fischer 2021, section 3.2.3).
#
# A slot sees its immediate neighbours alone, each through a linear map of its own:
#
# =================  =============================================================
# slot of node u     sum of
# =================  =============================================================
# `DESCENDANT`       u as ancestor
# `ANCESTOR`         u as descendant
# `FIRST_CHILD`      u as parent, its first child as right neighbour
# `NEXT_SIBLING`     u's parent as parent, u as left, its next sibling as right
#                    neighbour, if it has one
# =================  =============================================================

ROLES = 5
AS_ANCESTOR, AS_DESCENDANT, AS_PARENT, AS_LEFT, AS_RIGHT = range(ROLES)
_NOBODY = -1
# The roles in which a slot sees up to three nodes (`neighbours`), by its kind; where it sees nobody, any.
_SEEN_AS = {
    DESCENDANT: (AS_ANCESTOR, 0, 0), ANCESTOR: (AS_DESCENDANT, 0, 0), FIRST_CHILD: (AS_PARENT, AS_RIGHT, 0),
    NEXT_SIBLING: (AS_PARENT, AS_LEFT, AS_RIGHT),
}  # fmt: skip


class InsertionSlots(nn.Module):
    """Vectors of all slots of a batch.

    Args:
        width: D
    """

    def __init__(self, width: int):
        super().__init__()
        self.maps = nn.Linear(width, ROLES * width)
        for matrix in self.maps.weight.split(width):
            nn.init.xavier_uniform_(matrix)
        nn.init.zeros_(self.maps.bias)
        self.register_buffer("roles", torch.tensor([_SEEN_AS[kind] for kind in range(KINDS)]), persistent=False)

    def forward(self, states: Tensor, trees: PreorderTrees, slots: Tensor) -> Tensor:
        """Adds up the neighbours of the slots.

        Args:
            states: ``[B, M, D]`` of the nodes
            trees: of the B rows
            slots: ``[Z]`` int64 numbers of their slots (:class:`tree_fairseq.tree_insertion.slots.SlotNumbers`)

        Returns:
            vectors of the slots, ``[Z, D]``
        """
        nodes = trees.is_node.flatten().nonzero().squeeze(1)
        mapped = self.maps(states.flatten(0, 1).index_select(0, nodes)).view(-1, states.size(2))  # nodes * 5 x D
        # Row 0 is nobody, and is left out of sums.
        mapped = functional.pad(mapped, (0, 0, 1, 0))
        rank = trees.is_node.flatten().cumsum(0) - 1
        node = neighbours(trees).view(-1, self.roles.size(1)).index_select(0, slots)  # Z x 3
        role = self.roles.index_select(0, IN_TREE.kind(slots))
        rows = (rank[node.clamp(min=0)] * ROLES + role + 1).masked_fill(node == _NOBODY, 0)
        return functional.embedding_bag(rows, mapped, mode="sum", padding_idx=0)


def neighbours(trees: PreorderTrees) -> Tensor:
    """Which nodes the slots see; as what, :class:`InsertionSlots` knows of each kind.

    Returns:
        ``[B, N, 4, 3]`` int64: of each slot up to three nodes, as places in the flattened ``[B * N]`` nodes or -1; of slots that
        there are not, anything
    """
    batch, width = trees.parents.shape
    parents = trees.parents
    own = trees.places.expand(batch, width)
    nobody = own.new_full((1, 1), _NOBODY).expand(batch, width)
    # The next sibling stands where the subtree ends, if the node there has the same parent.
    following = trees.ends.clamp(max=width - 1)
    has_next = (trees.ends < width) & (parents.gather(1, following) == parents)
    seen_by = {
        DESCENDANT: (own, nobody, nobody),
        ANCESTOR: (own, nobody, nobody),
        FIRST_CHILD: (own, (own + 1).clamp(max=width - 1), nobody),
        NEXT_SIBLING: (parents, own, following.masked_fill(~has_next, _NOBODY)),
    }
    nodes = torch.stack([node for kind in range(KINDS) for node in seen_by[kind]], dim=2)
    first = width * torch.arange(batch, device=own.device).view(-1, 1, 1)
    return (nodes + first).masked_fill(nodes == _NOBODY, _NOBODY).unflatten(2, (KINDS, -1))


class TreeInsertionDecoder(TransformerDecoderBase):
    """fairseq's transformer decoder over nodes, which see all nodes of their tree and know how they stand to each other.

    With absolute positions it reads sequences of labels and brackets instead, and relations are not told.

    Args:
        cfg (TreeInsertionTransformerConfig): sizes and options
        dictionary: of labels
        embed_tokens: its table
    """

    def __init__(self, cfg, dictionary, embed_tokens, no_encoder_attn: bool = False, output_projection=None):
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn, output_projection)
        self.memory_type = encoder_of(cfg).memory
        self.relations = self.embed_brackets = None
        if cfg.absolute_positions:
            self.embed_brackets = Embedding(2, embed_tokens.embedding_dim, None)
        else:
            self.embed_positions = None
            self.relations = TreeRelations(self.embed_dim // cfg.decoder.attention_heads, not cfg.no_child_relations)
        self.slots = InsertionSlots(self.embed_dim)
        self.delete = nn.Linear(self.embed_dim, 1) if cfg.deletion else None

    def build_decoder_layer(self, cfg, no_encoder_attn: bool = False):
        """fairseq's layer with other attentions."""
        layer = super().build_decoder_layer(cfg, no_encoder_attn)
        cross = cross_attention_options(cfg)
        if not cfg.absolute_positions:
            common = {name: cross[name] for name in ("embed_dim", "num_heads", "dropout", "q_noise", "qn_block_size")}
            layer.self_attn = TreeRelationAttention(self_attention=True, **common)
        layer.encoder_attn = encoder_of(cfg).memory.attention(cfg, **cross)
        return layer

    def read(self, encoder_out: dict[str, list]) -> Memory:
        """Projects fairseq's output of an encoder for all layers."""
        states, memory = self.memory_type.view(encoder_out)
        return Memory(tuple(layer.encoder_attn.project(states, memory) for layer in self.layers))

    def forward(self, partial_tree: dict[str, Tensor], memory: Memory) -> dict[str, Optional[Tensor]]:
        """Scores what may be inserted in the slots of partial trees.

        Args:
            partial_tree: ``labels`` and ``parents``, each ``[B, M]`` int64, in preorder; and ``slots`` ``[Z]`` int64, the numbers of
                their slots
            memory: of :meth:`read`

        Returns:
            ``slot`` ``[Z]``, ``logits`` ``[Z, V]`` and ``delete`` ``[B, N]``, as :meth:`TreeInsertionTransformerModel.forward` has them
        """
        labels = partial_tree["labels"]
        trees = PreorderTrees.of(partial_tree["parents"], labels != self.padding_idx)
        states = self._node_states(labels, trees, memory)  # B x N x D
        vectors = self.slots(states, trees, partial_tree["slots"])
        if self.project_out_dim is not None:
            vectors = self.project_out_dim(vectors)
        delete = None if self.delete is None else self.delete(states).squeeze(2)
        return {"slot": partial_tree["slots"], "logits": self.output_layer(vectors), "delete": delete}

    def _node_states(self, labels: Tensor, trees: PreorderTrees, memory: Memory) -> Tensor:
        if self.relations is not None:
            return self._run(labels, self.embed_tokens.weight, self.relations(trees), memory)
        count = self.embed_tokens.num_embeddings
        tokens, places = structure_tokens(labels, trees, count, count + 1, self.padding_idx)
        if tokens.size(1) > self.max_positions():
            raise InputError(
                f"a partial tree of {int(trees.is_node.sum(1).amax())} nodes is a sequence of {tokens.size(1)} labels and brackets, "
                f"longer than --max-target-positions {self.max_positions()}"
            )
        table = torch.cat([self.embed_tokens.weight, self.embed_brackets.weight])
        states = self._run(tokens, table, tokens.eq(self.padding_idx), memory)
        return states.gather(1, places.unsqueeze(2).expand(-1, -1, states.size(2)))

    def _run(self, tokens: Tensor, table: Tensor, seen, memory: Memory) -> Tensor:
        """The states of tokens after all layers.

        Args:
            tokens: ``[B, L]`` rows of the table
            table: of embeddings
            seen: what self-attention takes for the padding mask
            memory: of B sentences
        """
        x = self.embed_scale * functional.embedding(tokens, table, self.padding_idx)
        if self.quant_noise is not None:
            x = self.quant_noise(x)
        if self.project_in_dim is not None:
            x = self.project_in_dim(x)
        if self.embed_positions is not None:
            x = x + self.embed_positions(tokens)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        x = self.dropout_module(x).transpose(0, 1)  # L x B x D
        for layer, remembered in zip(self.layers, memory.layers, strict=True):
            x, _, _ = layer(x, encoder_out=remembered, self_attn_padding_mask=seen)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        return x.transpose(0, 1)
