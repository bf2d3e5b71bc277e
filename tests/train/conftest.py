import os
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools", "train"))
pytest.importorskip("torch")


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def tiny():
    """A tiny model with random weights in which every part matters."""
    import blocks
    import config
    import model
    import torch
    torch.set_num_threads(1)
    c = config.text_config(**config.TINY)
    token_map = torch.arange(c["vocab_size"]) // 2
    size = int(token_map.max()) + 1
    c["engram_compressed_vocab_size"] = size
    c["engram_num_embeddings"] = [sum(p) for p in blocks.engram_plan(c, size)[0]]
    g, params = torch.Generator().manual_seed(3), model.init_params(c, 1)
    for k, p in params.items():
        if "norm" in k or k in ("engram_q", "engram_k"):
            params[k] = 1 + 0.1 * torch.randn(p.shape, generator=g)
        elif k.endswith("base") or k == "attn_sink" or k == "embed":
            params[k] = torch.randn(p.shape, generator=g)
        elif k.endswith("gate_bias"):
            params[k] = 0.2 * torch.randn(p.shape, generator=g)
        elif not k.endswith("scale"):
            params[k] = torch.randn(p.shape, generator=g) * p.shape[-1] ** -0.5
    return model.Model(c, token_map, params)
