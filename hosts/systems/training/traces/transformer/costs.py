"""What a rank's part of a transformer holds and computes.

Floating point operations as in Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM", SC 2021, appendix: a layer takes 24 b s h^2 + 4 b s^2 h forward (b sequences of s tokens, width h, MLP
of 4 h), the words' logits 2 b s h V; backward is twice as much. Without attention that is 2 x parameters x tokens
forward, and 4 x backward.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradbed.hosts.systems.training.traces.transformer.model import TransformerModel


@dataclass(frozen=True)
class Tensor:
    """Parameters whose gradient is complete at one time. values: on one rank. of_experts: each expert parallel rank
    holds others."""

    name: str
    values: int
    of_experts: bool = False


def attention_tensors(model: TransformerModel) -> list[Tensor]:
    """Of one layer on one rank, in the order of the forward pass."""
    h, tp = model.width, model.tp
    return [
        Tensor("attention norm", 2 * h),
        Tensor("query, key and value", 3 * (h * h + h) // tp),
        Tensor("projection", h * h // tp + h),
    ]


def mlp_tensors(model: TransformerModel) -> list[Tensor]:
    h, f, tp = model.width, model.feed_forward_width, model.tp
    norm = Tensor("MLP norm", 2 * h)
    up, down = (h * f + f) // tp, f * h // tp + h
    if not model.experts:
        return [norm, Tensor("MLP up", up), Tensor("MLP down", down)]
    own = model.experts // model.ep
    return [
        norm,
        Tensor("router", h * model.experts),
        Tensor("experts up", own * up, of_experts=True),
        Tensor("experts down", own * down, of_experts=True),
    ]


def embedding_tensors(model: TransformerModel) -> list[Tensor]:
    """Of the first stage."""
    return [words(model), Tensor("positions", model.sequence * model.width)]


def words(model: TransformerModel) -> Tensor:
    """The words' embeddings, which the logits use again."""
    return Tensor("words", model.padded_vocabulary // model.tp * model.width)


def final_norm(model: TransformerModel) -> Tensor:
    return Tensor("final norm", 2 * model.width)


def attention_flops(model: TransformerModel) -> int:
    """Of one layer and micro-batch on one rank, forward."""
    t, h = model.tokens, model.width
    return (8 * t * h * h + 4 * t * model.sequence * h) // model.tp


def mlp_flops(model: TransformerModel) -> int:
    """Of the MLP, or of the experts that a rank holds if all are used alike."""
    used = model.top_k if model.experts else 1
    return 4 * model.tokens * model.width * model.feed_forward_width * used // model.tp


def router_flops(model: TransformerModel) -> int:
    return 2 * model.tokens * model.width * model.experts


def logits_flops(model: TransformerModel) -> int:
    return 2 * model.tokens * model.width * model.padded_vocabulary // model.tp


def activation_bytes(model: TransformerModel) -> int:
    """Of a micro-batch between two layers, whole."""
    return model.tokens * model.width * model.bytes
