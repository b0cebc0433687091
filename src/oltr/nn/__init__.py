"""The boxes of the paper's method figure and the heads of the other methods, one per file.

`Network` puts them together: any timm backbone, modulated attention, the direct feature, and a head such as
the linear classifier or the dynamic meta-embedding with its visual memory. Each is an ordinary `nn.Module`
and can be used without the others.
"""

from oltr.nn.attention import Attention, SelfAttention, SpatialAttention
from oltr.nn.backbone import Backbone
from oltr.nn.blocked_softmax import blocked_cross_entropy, blocked_memory_feature
from oltr.nn.classifier import CosineClassifier, squash
from oltr.nn.common_classes import common_classes
from oltr.nn.cosine_head import CosineHead
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.episode import Episode, make_episode
from oltr.nn.expert_head import ExpertHead
from oltr.nn.expert_stages import ExpertStages, give_experts
from oltr.nn.fit_linear import fit_linear
from oltr.nn.generated_head import GeneratedHead
from oltr.nn.heads import Head, LinearHead, MetaEmbeddingHead, Output
from oltr.nn.memory import Memory, squared_distances
from oltr.nn.memory_head import MemoryHead
from oltr.nn.meta_embedding import MetaEmbedding, MetaParts
from oltr.nn.multilevel import MultilevelBackbone
from oltr.nn.network import Network, build_attention
from oltr.nn.projector import projector
from oltr.nn.regressed_head import RegressedHead
from oltr.nn.regressors import RecursiveRegressor, Regressor
from oltr.nn.scaled_head import ScaledHead
from oltr.nn.weight_generator import WeightGenerator

__all__ = [
    "Attention",
    "Backbone",
    "CosineClassifier",
    "CosineHead",
    "DirectFeature",
    "Episode",
    "ExpertHead",
    "ExpertStages",
    "GeneratedHead",
    "Head",
    "LinearHead",
    "Memory",
    "MemoryHead",
    "MetaEmbedding",
    "MetaEmbeddingHead",
    "MetaParts",
    "MultilevelBackbone",
    "Network",
    "Output",
    "RecursiveRegressor",
    "RegressedHead",
    "Regressor",
    "ScaledHead",
    "SelfAttention",
    "SpatialAttention",
    "WeightGenerator",
    "blocked_cross_entropy",
    "blocked_memory_feature",
    "build_attention",
    "common_classes",
    "fit_linear",
    "give_experts",
    "make_episode",
    "projector",
    "squared_distances",
    "squash",
]
