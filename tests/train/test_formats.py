"""Number formats, export and what is derived from the tokenizer."""
import hashlib
import json

import pytest
import torch

import blocks
import export
import quant
from model import FLOAT, Model


def test_e2m1_rounds_ties_to_the_even_code():
    v = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 7.0, -0.75])
    assert quant.e2m1(v).tolist() == [0, 1, 1, 2, 2, 4, 4, 6, -1]


def test_scales_are_exact_powers_of_two():
    amax = torch.tensor([0.0, 1e-4, 0.875, 1.0, 1.75, 3.5, 7.0, 448.0, 449.0])
    assert torch.log2(quant.scale_fp8(amax)).tolist() == [-22, -22, -9, -8, -8, -7, -6, 0, 1]


@pytest.mark.parametrize("kind", ["fp8", "fp4", "row8", "bf16", "f32"])
def test_bytes_hold_what_training_saw(kind):
    w = torch.randn(3, 64, 96) * torch.exp(torch.randn(3, 64, 1))
    value = quant.weight_value(w, kind)
    assert torch.equal(quant.decode(*quant.encode(w, kind), kind), value)
    assert torch.equal(quant.weight_value(value, kind), value)


@pytest.mark.parametrize("f", [quant.fake_fp8, quant.fake_idx, quant.fake_comp])
def test_gradient_passes_the_quantiser(f):
    x = torch.randn(4, 64, requires_grad=True)
    f(x).sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))


def test_export_reads_back_to_the_same_logits(tiny, tmp_path):
    export.write(tiny.c, tiny.params, tmp_path)
    c, params = export.read(str(tmp_path))
    assert c == tiny.c
    ids = torch.arange(40)[None] * 7 % 300
    with torch.no_grad():
        assert torch.equal(Model(c, tiny.token_map, params).logits(ids, FLOAT), tiny.logits(ids, FLOAT))
    index = json.load(open(tmp_path / "model.safetensors.index.json"))["weight_map"]
    assert set(index.values()) == {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}
    for name in ("layers.2.attn.compressor.wgate.weight", "layers.8.attn.indexer.wq_b.scale", "mtp.1.markov_head.head.weight",
                 "mtp.0.main_proj.scale", "layers.4.engram.embed.scale", "layers.0.ffn.experts.3.w2.scale",
                 "mtp.1.ffn.gate.bias_vl", "layers.9.attn.attn_sink"):
        assert name in index, name
    for name in ("layers.6.attn.compressor.wgate.weight", "layers.8.attn.indexer.wk.weight", "layers.0.ffn.gate.scale"):
        assert name not in index, name


def test_engram_multipliers_are_those_of_the_release():
    c = dict(engram_layer_ids=[1, 14], engram_max_ngram_size=4, engram_n_heads=8, engram_vocab_size=1000)
    primes, mult = blocks.engram_plan(c, 99092)
    assert mult == [[76632096046245, 4839876093313, 35959672319349, 73987337458391],
                    [67716810739261, 51510806800915, 30921347202721, 82619226485591]]
    flat = primes[0] + primes[1]
    assert len(set(flat)) == 48 and flat[:3] == [1009, 1013, 1019]


def test_shipped_files_are_the_ones_that_were_summed(root):
    for line in open(f"{root}/models/gannet-mini/SHA256SUMS"):
        digest, name = line.split()
        assert hashlib.sha256(open(f"{root}/models/gannet-mini/{name}", "rb").read()).hexdigest() == digest, name


def test_shipped_config_agrees_with_its_tokenizer(root):
    tokenizers = pytest.importorskip("tokenizers")
    import tokenizer
    folder = f"{root}/models/gannet-mini"
    top, t = json.load(open(f"{folder}/config.json")), tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
    c, classes = top["text_config"], tokenizer.token_map(t)
    assert len(classes) == c["vocab_size"] and max(classes) + 1 == c["engram_compressed_vocab_size"]
    assert [sum(p) for p in blocks.engram_plan(c, max(classes) + 1)[0]] == c["engram_num_embeddings"]
    assert t.token_to_id("<｜System｜>") == c["dspark_noise_token_id"]
    assert t.token_to_id("<｜deepseek_image｜>") == top["image_token_id"]
    assert t.encode("don't 12345", add_special_tokens=False).tokens[-2:] == ["123", "45"]
