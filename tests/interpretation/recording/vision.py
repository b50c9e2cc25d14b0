"""A small vision transformer, written as image models are."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

GRID, PATCH, DIM, HEADS = (3, 5), 4, 14, 2


class PatchEmbedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Conv2d(3, DIM, kernel_size=PATCH, stride=PATCH)

    def forward(self, image: Tensor) -> Tensor:
        return self.proj(image).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    """By the fused kernel, or by hand, and then it returns its weights too."""

    def __init__(self, fused: bool):
        super().__init__()
        self.fused = fused
        self.scale = 0.7 * (DIM // HEADS) ** -0.5  # another than the kernel's own
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.q_norm, self.k_norm = nn.LayerNorm(DIM // HEADS), nn.LayerNorm(DIM // HEADS)
        self.attn_drop = nn.Dropout(0.3)
        self.proj = nn.Linear(DIM, DIM)
        self.weights: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, HEADS, dim // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        q, k = self.q_norm(q), self.k_norm(k)
        if self.fused:
            dropout = self.attn_drop.p if self.training else 0.0
            x = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, scale=self.scale)
        else:
            self.weights = ((q * self.scale) @ k.transpose(-2, -1)).softmax(dim=-1)
            x = self.attn_drop(self.weights) @ v
        return self.proj(x.transpose(1, 2).reshape(batch, tokens, dim))


class LayerScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.gamma = nn.Parameter(torch.rand(DIM))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class Block(nn.Module):
    def __init__(self, fused: bool):
        super().__init__()
        self.norm1, self.attn, self.ls1 = nn.LayerNorm(DIM), Attention(fused), LayerScale()
        self.norm2, self.ls2 = nn.LayerNorm(DIM), LayerScale()
        self.mlp = nn.Sequential(nn.Linear(DIM, 17), nn.GELU(), nn.Linear(17, DIM))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.ls1(self.attn(self.norm1(x)))
        return x + self.ls2(self.mlp(self.norm2(x)))


class VisionTransformer(nn.Module):
    """Image (batch, 3, 12, 20) -> scores of 7 classes; its tokens are a class token and 3 x 5 patches."""

    def __init__(self, *, fused: bool = True):
        super().__init__()
        self.patch_embed = PatchEmbedding()
        self.cls_token = nn.Parameter(torch.randn(1, 1, DIM))
        self.pos_embed = nn.Parameter(torch.randn(1, 1 + GRID[0] * GRID[1], DIM))
        self.blocks = nn.Sequential(*(Block(fused) for _ in range(3)))
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, 7)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patch_embed(image)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


def image(batch: int = 2) -> Tensor:
    return torch.randn(batch, 3, GRID[0] * PATCH, GRID[1] * PATCH)
