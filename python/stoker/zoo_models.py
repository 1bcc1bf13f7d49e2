"""The models of the zoo that are not torchvision's, written as anyone would write a capture function.

Capture one with `stoker capture zoo_models.py:gpt2 -o gpt2.step.gz`. Each function returns a module and example inputs;
its parameters `batch` and `seq_len`, and what it declares itself, become dimensions of the step.
"""

from __future__ import annotations

import torch
from torch import nn

from stoker.polynomial import Dimension
from stoker.protocol import Capture

LANGUAGE_SEQ_LEN = 128
TRANSLATION_SEQ_LEN = 32
TRANSLATION_VOCAB = 8000


def _tokens(batch: int, length: int) -> torch.Tensor:
    return torch.zeros(batch, length, dtype=torch.long)


# -- small CNNs ------------------------------------------------------------------------------------------------------


def cnn_mnist(batch=64):
    """Two convolutions and two linear layers for 28x28 grey images (1.2 million parameters)."""
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Flatten(), nn.Linear(64 * 12 * 12, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))
    return Capture(model, torch.empty(batch, 1, 28, 28), sample={"what": "image"})


def cnn_cifar10(batch=64):
    """Three stages of two convolutions each for 32x32 colour images."""

    def stage(channels_in, channels):
        return [nn.Conv2d(channels_in, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
                nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
                nn.MaxPool2d(2), nn.Dropout(0.25)]

    model = nn.Sequential(*stage(3, 32), *stage(32, 64), *stage(64, 128), nn.Flatten(),
                          nn.Linear(128 * 4 * 4, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 10))
    return Capture(model, torch.empty(batch, 3, 32, 32), sample={"what": "image"})


# -- recurrent translation -------------------------------------------------------------------------------------------


class BidirectionalGru(nn.Module):
    """Embedding, one bidirectional GRU, and a linear layer to the target vocabulary at each position."""

    def __init__(self, vocab: int, units: int = 128):
        super().__init__()
        self.embedding = nn.Embedding(vocab, units)
        self.gru = nn.GRU(units, units, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * units, vocab)

    def forward(self, source):
        states, _ = self.gru(self.embedding(source))
        return self.head(states)


class GruSeq2Seq(nn.Module):
    """A GRU encoder whose last state starts a GRU decoder; the decoder is fed the true previous words."""

    def __init__(self, vocab: int, units: int = 128):
        super().__init__()
        self.source_embedding = nn.Embedding(vocab, units)
        self.target_embedding = nn.Embedding(vocab, units)
        self.encoder = nn.GRU(units, units, batch_first=True)
        self.decoder = nn.GRU(units, units, batch_first=True)
        self.head = nn.Linear(units, vocab)

    def forward(self, source, previous):
        _, state = self.encoder(self.source_embedding(source))
        states, _ = self.decoder(self.target_embedding(previous), state)
        return self.head(states)


def token_loss(logits, target):
    """Mean cross-entropy over all positions."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())


def _translation(model, inputs, batch, seq_len, vocab):
    return Capture(model, inputs, loss=token_loss, targets=(_tokens(batch, seq_len),),
                   dimensions=[Dimension("seq_len", seq_len, degree=1), Dimension("vocab", vocab, degree=1)],
                   sample={"what": "sentence pair", "tokens": {"seq_len": 1}})


def gru_bi128(batch=64, seq_len=TRANSLATION_SEQ_LEN, vocab=TRANSLATION_VOCAB):
    return _translation(BidirectionalGru(vocab), _tokens(batch, seq_len), batch, seq_len, vocab)


def gru_seq2seq(batch=64, seq_len=TRANSLATION_SEQ_LEN, vocab=TRANSLATION_VOCAB):
    inputs = (_tokens(batch, seq_len), _tokens(batch, seq_len))
    return _translation(GruSeq2Seq(vocab), inputs, batch, seq_len, vocab)


# -- transformers, from configurations: nothing is downloaded ----------------------------------------------------------


def _language(model, batch, seq_len):
    inputs = {"input_ids": _tokens(batch, seq_len), "labels": _tokens(batch, seq_len)}
    return Capture(model, inputs, sample={"what": "sequence", "tokens": {"seq_len": 1}})


def _own(name: str, batch, seq_len):
    """A model of that name by the package's own networks, where transformers is not installed."""
    from stoker import networks
    from stoker.hub import known

    return _language(networks.build(known.configuration(name)), batch, seq_len)


def bert_base(batch=16, seq_len=LANGUAGE_SEQ_LEN):
    """BERT-base with its masked-word head."""
    try:
        from transformers import BertConfig, BertForMaskedLM
    except ImportError:
        return _own("bert-base-uncased", batch, seq_len)

    return _language(BertForMaskedLM(BertConfig()), batch, seq_len)


def gpt2(batch=8, seq_len=LANGUAGE_SEQ_LEN):
    """The 124-million-parameter GPT-2; it keeps its keys and values (use_cache), as it does by default."""
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        return _own("gpt2", batch, seq_len)

    return _language(GPT2LMHeadModel(GPT2Config()), batch, seq_len)


def t5_small(batch=16, seq_len=LANGUAGE_SEQ_LEN):
    """T5-small; source and target are equally long."""
    from transformers import T5Config, T5ForConditionalGeneration

    return _language(T5ForConditionalGeneration(T5Config(decoder_start_token_id=0)), batch, seq_len)


def llama_1b(batch=4, seq_len=512):
    """A decoder of 1.24 billion parameters with grouped-query attention, in the proportions of Llama 3.2 1B."""
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError:
        return _own("meta-llama/Llama-3.2-1B", batch, seq_len)

    config = LlamaConfig(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                         num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=131072,
                         tie_word_embeddings=True, use_cache=False)
    return _language(LlamaForCausalLM(config), batch, seq_len)


# -- networks of the package's own, in the sizes of well-known models ------------------------------------------------

LARGE_SEQ_LEN = 512
TRANSCRIPT_TOKENS = 64


def _trained(model, inputs, **more):
    """A capture of the model with AdamW, which trains all of these."""
    return Capture(model, inputs, optimizer=torch.optim.AdamW(model.parameters()), **more)


def _decoder(batch, seq_len, longest, **config):
    from stoker import networks

    inputs = {"input_ids": _tokens(batch, seq_len), "labels": _tokens(batch, seq_len)}
    return _trained(networks.build(config), inputs, sample={"what": "sequence", "tokens": {"seq_len": 1}},
                    dimensions=[Dimension("seq_len", seq_len, degree=2, max=longest)])


def llama_3_8b(batch=1, seq_len=LARGE_SEQ_LEN):
    """Llama 3 8B: 8.03 billion parameters; Llama 3.1 8B has the same sizes and takes longer sequences."""
    return _decoder(batch, seq_len, 131072, model_type="llama", vocab_size=128256, hidden_size=4096, intermediate_size=14336,
                    num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, tie_word_embeddings=False)


def mistral_7b(batch=1, seq_len=LARGE_SEQ_LEN):
    """Mistral 7B: 7.24 billion parameters; without its window, which counts from 4096 words on only."""
    return _decoder(batch, seq_len, 32768, model_type="mistral", vocab_size=32000, hidden_size=4096, intermediate_size=14336,
                    num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, tie_word_embeddings=False)


def qwen2_5_7b(batch=1, seq_len=LARGE_SEQ_LEN):
    """Qwen 2.5 7B: 7.62 billion parameters."""
    return _decoder(batch, seq_len, 131072, model_type="qwen2", vocab_size=152064, hidden_size=3584, intermediate_size=18944,
                    num_hidden_layers=28, num_attention_heads=28, num_key_value_heads=4, tie_word_embeddings=False)


def bert_large(batch=8, seq_len=LANGUAGE_SEQ_LEN):
    """BERT-large with its masked-word head: 335 million parameters."""
    return _decoder(batch, seq_len, 512, model_type="bert", vocab_size=30522, hidden_size=1024, intermediate_size=4096,
                    num_hidden_layers=24, num_attention_heads=16, max_position_embeddings=512)


def whisper_small(batch=8):
    """Whisper-small on windows of 30 seconds, with transcripts of 64 words: 242 million parameters."""
    from stoker import networks

    model = networks.build({"model_type": "whisper", "vocab_size": 51865, "d_model": 768, "encoder_layers": 12,
                            "decoder_layers": 12, "encoder_attention_heads": 12, "decoder_attention_heads": 12,
                            "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072})
    inputs = {"input_features": torch.empty(batch, 80, 3000), "labels": _tokens(batch, TRANSCRIPT_TOKENS)}
    return _trained(model, inputs, sample={"what": "recording"})


def sd_unet(batch=4):
    """The U-Net of Stable Diffusion 1.5 on latents of 64 x 64 (pictures of 512): 860 million parameters."""
    from stoker.networks.diffusion import TEXT_WIDTH, DiffusionUNet

    inputs = {"latents": torch.empty(batch, 4, 64, 64), "timesteps": torch.zeros(batch, dtype=torch.long),
              "text": torch.empty(batch, 77, TEXT_WIDTH), "noise": torch.empty(batch, 4, 64, 64)}
    return _trained(DiffusionUNet(), inputs, sample={"what": "latent"})


def unet(batch=8):
    """A U-Net that segments pictures of 512 x 512 into two classes: 31 million parameters."""
    from stoker.networks.pixels import SegmentationUNet

    inputs = {"images": torch.empty(batch, 3, 512, 512), "masks": torch.zeros(batch, 512, 512, dtype=torch.long)}
    return _trained(SegmentationUNet(2), inputs, sample={"what": "image"})


def yolo_s(batch=16):
    """A detector in the manner of YOLO, small, on pictures of 640 x 640: 11 million parameters, trained with SGD."""
    from stoker.networks.pixels import Detector

    model, places = Detector(), 80 * 80 + 40 * 40 + 20 * 20
    inputs = {"images": torch.empty(batch, 3, 640, 640), "classes": torch.empty(batch, places, 80),
              "bins": torch.zeros(batch, places, 4, dtype=torch.long)}
    return Capture(model, inputs, optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.937, nesterov=True),
                   sample={"what": "image"})
