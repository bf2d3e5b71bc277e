"""The two independent implementations, run in fp32 with their cache quantisers off.

nemo-automodel  all of the model, DSpark too; whole sequences only
mlx-lm          its real cache, one-shot, in chunks and token by token; no Engram, no image routing, no DSpark: it is
                compared with the transcription of the same weights without Engram
"""
import contextlib
import importlib.metadata
import os

import numpy as np

import toy_tokenizer

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # compiling costs more than it saves at this size


def versions():
    names = ("nemo-automodel", "mlx-lm", "mlx", "torch", "transformers", "numpy")
    found = {}
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _bare(config):
    return {k: v for k, v in config.items() if k != "model_type"}


class Nemo:
    def __init__(self, case):
        import torch
        from nemo_automodel.components.models.common import BackendConfig
        from nemo_automodel.components.models.deepseek_v41 import attention, dspark
        from nemo_automodel.components.models.deepseek_v41.config import DeepseekV41Config, DeepseekV41TextConfig
        from nemo_automodel.components.models.deepseek_v41.engram import _compressed_token_map
        from nemo_automodel.components.models.deepseek_v41.model import DeepseekV41ForCausalLM
        from transformers import PreTrainedTokenizerFast

        torch.set_default_dtype(torch.float32)
        torch.manual_seed(0)
        torch.set_num_threads(1)
        attention.quantize_cache = dspark.quantize_cache = lambda values, **_: values
        self.torch, self.case = torch, case
        backend = dict(attn="eager", linear="torch", rms_norm="torch_fp32", rope_fusion=False, gate_precision="float32",
                       dispatcher="torch", experts="torch")
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(case.folder, "tokenizer.json"))
        ids, n = _compressed_token_map(tokenizer)
        assert n == case.config["engram_compressed_vocab_size"] and np.array_equal(ids, case.token_map), "token map"
        config = DeepseekV41Config(text_config={**_bare(case.config), "dtype": "float32"}, dtype="float32",
                                   vision_config={"num_hidden_layers": 0}, image_token_id=toy_tokenizer.IMAGE_ID)
        self.model = DeepseekV41ForCausalLM(config, backend=BackendConfig(**backend, enable_hf_state_dict_adapter=True),
                                            tokenizer=tokenizer)
        self._load(self.model, lambda n: not n.startswith(("mtp.", "image_")))
        text = DeepseekV41TextConfig(**{**_bare(case.config), "dtype": "float32"})
        self.drafter = dspark.DeepseekV41DSparkModel(text, BackendConfig(**backend), num_anchors=1,
                                                     enable_confidence_head=True)
        self._load(self.drafter, lambda n: n.startswith("mtp."))
        with torch.no_grad():
            self.drafter.embed_tokens.weight.copy_(self._tensor(case.checkpoint.values["embed.weight"]))
            self.drafter.lm_head.weight.copy_(self._tensor(case.checkpoint.values["head.weight"]))
        self._check_hash_tables()

    def _tensor(self, array):
        return self.torch.from_numpy(np.asarray(array, np.float32))

    def _load(self, module, wanted):
        state = {n: self._tensor(v) for n, v in self.case.checkpoint.values.items() if wanted(n)}
        result = module.load_state_dict(module.state_dict_adapter.from_hf(state), strict=False)
        left = [k for k in result.missing_keys if not k.startswith(("embed_tokens", "lm_head", "model.vi", "vision"))]
        assert not left and not result.unexpected_keys, (left, result.unexpected_keys)
        module.eval().float()

    def _check_hash_tables(self):
        if not self.case.config["engram_layer_ids"]:
            return
        hashes = self.model.model.engram_hash
        primes = np.array([np.ravel(p) for p in self.case.tables[0]])
        assert np.array_equal(hashes.primes.numpy(), primes), "primes"
        assert np.array_equal(hashes.multipliers.numpy(), np.array(self.case.tables[1])), "multipliers"

    def logits(self, ids, is_image=None, span=None):
        torch, extra = self.torch, {}
        if span is not None:
            rows = self.case.checkpoint.values["embed.weight"][ids]
            rows[is_image] = span
            extra = dict(inputs_embeds=self._tensor(rows)[None], image_mask=torch.from_numpy(is_image)[None])
        with torch.no_grad():
            hidden = self.model.model(torch.from_numpy(np.asarray(ids))[None], **extra)
            hidden = hidden[0] if isinstance(hidden, tuple) else hidden
            return self.model.lm_head(hidden).reshape(len(ids), -1).numpy().astype(np.float64)

    def draft(self, taps, anchor, draft_ids):
        """Logits of the block, given the ids that the block itself picked. (Its confidence head reads the normed output,
        a documented departure from the release: not compared.)"""
        torch, d, n = self.torch, self.drafter, len(taps)
        at = torch.tensor([[n]])
        noise = [self.case.config["dspark_noise_token_id"]] * (self.case.config["dspark_block_size"] - 1)
        with torch.no_grad():
            out = super(type(d), d).forward(
                d.embed_tokens(torch.tensor([[anchor] + noise])), self._tensor(taps)[None],
                position_ids=d.build_position_ids(at, n),
                attention_mask=d.build_attention_mask(at, torch.ones(1, 1, dtype=torch.bool), n, torch.float32),
                previous_token_ids=torch.tensor([[anchor, *draft_ids[:-1]]]))
            logits = d.compute_logits(out.normalized_hidden_states) + out.transition_logits
            return logits[0].numpy()


class Mlx:
    def __init__(self, case):
        import mlx.core as mx
        from mlx_lm.models import deepseek_v41 as lib

        lib._fake_quant_fp8 = lambda x, block_size=32: x
        lib._fake_quant_fp4 = lambda x, **_: x
        config = dict(case.config, engram_layer_ids=[])
        self.mx = mx
        self.model = lib.Model(lib.ModelArgs.from_dict({"model_type": "deepseek_v41", "text_config": config}))
        weights = self.model.sanitize({n: mx.array(v.astype(np.float32)) for n, v in case.checkpoint.values.items()})
        self.model.load_weights(list(weights.items()), strict=True)

    def run(self, ids, sizes=None):
        """Logits, one-shot without a cache or in steps of these sizes with it; the cache comes back too."""
        cache, out, at = (self.model.make_cache(), [], 0) if sizes else (None, [], 0)
        for n in sizes or [len(ids)]:
            out.append(np.array(self.model(self.mx.array(ids[at:at + n])[None], cache=cache))[0].astype(np.float64))
            at += n
        return np.concatenate(out), cache

    def greedy(self, first, cache, n):
        ids = [int(first)]
        while len(ids) < n:
            logits = np.array(self.model(self.mx.array(np.array(ids[-1:]))[None], cache=cache))[0, -1]
            ids.append(int(logits.argmax()))
        return ids


def _same_greedy(ours, theirs, what):
    parted = np.nonzero(np.asarray(ours) != np.asarray(theirs))[0]
    assert len(parted) == 0, (what, "greedy tokens part at step", parted[:1])


def _compare_nemo(case, settled):
    nemo, logits = Nemo(case), {}
    worst = worst_draft = 0
    for name, (prompt, ours) in settled.items():
        n = len(prompt.ids)
        ids = np.concatenate([prompt.ids, ours.greedy])
        mask = np.concatenate([prompt.is_image, np.zeros(len(ours.greedy), bool)])
        got = nemo.logits(ids, mask, prompt.span)
        logits[name] = got[:n]
        worst = max(worst, np.abs(got[:n] - ours.logits).max())
        print(f"  nemo {name}: {np.abs(got[:n] - ours.logits).max():.1e}", flush=True)
        _same_greedy(ours.greedy, got[n - 1:-1].argmax(1), ("nemo", name))
        got = nemo.draft(ours.taps, ours.anchor, ours.draft_ids)
        worst_draft = max(worst_draft, np.abs(got - ours.draft_logits).max())
    return {"nemo logits": worst, "nemo draft logits": worst_draft}, logits


def _compare_mlx(case, settled):
    mlx, worst = Mlx(case), {"one-shot": 0, "chunks": 0, "steps": 0}
    for name in ("one", "forty", "ninety_seven", "long"):
        prompt, ours = settled[name]
        n = len(prompt.ids)
        cut = [7, 1, 12, n - 20] if n > 20 else [n]
        for how, sizes in (("one-shot", None), ("chunks", cut), ("steps", [1] * n)):
            if how == "steps" and n > 400:
                continue
            got, cache = mlx.run(prompt.ids, sizes)
            worst[how] = max(worst[how], np.abs(got - ours.logits).max())
            if how == "chunks":
                _same_greedy(ours.greedy, mlx.greedy(got[-1].argmax(), cache, len(ours.greedy)), ("mlx", name))
    return {f"mlx {how}": x for how, x in worst.items()}


def compare(case, settled, settle_without_engram):
    """(largest deviations by name, logits of nemo-automodel by prompt)."""
    figures, logits = _compare_nemo(case, settled)
    return figures | _compare_mlx(case, settle_without_engram() if case.config["engram_layer_ids"] else settled), logits
