"""From messages to the token ids that a model reads.

In: messages and template flags. Out: ids, with exactly the BOS that the model wants. The text of a message stays text: a
chat marker or special token that somebody wrote in it is encoded as the characters it is made of, never as the
control token. Models without a template get a named fallback format (see `chat_format.py`), announced once and part
of the digest. Left out on purpose: tools, images, and continuing a reply that has begun.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from collabsim.errors import ConfigError, ContextOverflowError, PrerequisiteError, nearest
from collabsim.models.local.chat_format import DEFAULT, FORMATS, TEMPLATE
from collabsim.models.local.message_merging import merged, system_to_user
from collabsim.models.weights.folder import ModelFolder
from collabsim.models.weights.gguf_tokenizer import adds_bos
from collabsim.optional_packages import first_line, require
from collabsim.request import Message, Messages
from collabsim.seeds import digest

RENDERER = 1
"""Raise it when the same messages become other ids than before."""
_RESERVED = frozenset({"messages", "conversation", "tokenize", "add_generation_prompt", "continue_final_message"})
_announced: set[str] = set()


class _Loaded(NamedTuple):
    tokenizer: Any
    bos: int | None
    """What the tokenizer itself puts in front of a text."""
    special: tuple[str, ...]
    """Tokens that are never text."""
    markers: tuple[str, ...]
    """Other tokens that the template sets between turns; a model's own turn may hold them (`</think>`)."""
    flags: str
    """The template, to look for names of flags in."""


class Prompter:
    """Writes prompts for the model in a folder. Thread-safe; the tokenizer is loaded on first use.

    `chat_format` is `template` (the model's own), `plain`, `dialogue` or `raw`; None means the model's own where it has one,
    else `plain`, with a warning that says so. Raises `ConfigError` for any other.
    """

    def __init__(self, folder: ModelFolder, chat_format: str | None = None) -> None:
        self.folder = folder
        self.chat_format = _chosen(folder, chat_format)
        self._lock = threading.RLock()  # a tokenizer holds state while it encodes
        self._loaded: _Loaded | None = None
        self._takes_system: bool | None = None

    @property
    def digest(self) -> str:
        """Equal for prompters that make equal ids of equal messages; known without loading the tokenizer."""
        written = TEMPLATE if self.chat_format == TEMPLATE else FORMATS[self.chat_format].version
        return digest(["prompter", RENDERER, self.folder.tokenizer, written])

    @property
    def stop(self) -> tuple[str, ...]:
        """Stop strings that this format needs beside those of the sampling; none for a chat template."""
        return () if self.chat_format == TEMPLATE else FORMATS[self.chat_format].stop

    @property
    def tokenizer(self) -> Any:
        """The transformers tokenizer. Raises `PrerequisiteError` when it cannot be loaded."""
        return self._ready().tokenizer

    def _ready(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self.folder, self.chat_format)
            return self._loaded

    def render(self, messages: Messages, template_flags: Mapping[str, Any] | None = None) -> tuple[int, ...]:
        """The ids of a prompt that asks for the next reply.

        `template_flags` such as `enable_thinking` go to the template. Raises `ConfigError` for a flag that the template does
        not know, and for a conversation that it refuses.
        """
        with self._lock:
            return self._with_bos(self._encode(self._written(messages, dict(template_flags or {}))))

    def text(self, messages: Messages, template_flags: Mapping[str, Any] | None = None) -> str:
        """The prompt as the model reads it, special tokens shown: for people."""
        ids = list(self.render(messages, template_flags))
        with self._lock:
            return str(self.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def count(self, messages: Messages, template_flags: Mapping[str, Any] | None = None) -> int:
        """Tokens of the prompt."""
        return len(self.render(messages, template_flags))

    def _written(self, messages: Messages, flags: dict[str, Any]) -> list[str]:
        """The prompt's text in pieces: cut inside every marker that stands in a message."""
        messages = merged(messages)
        self._check_flags(flags)
        cut = _unused(message.content for message in messages)
        broken = tuple(Message(role, self._break_markers(role, content, cut)) for role, content in messages)
        if self.chat_format != TEMPLATE:
            return FORMATS[self.chat_format].write(broken).split(cut)
        if not self._accepts_system(flags):
            broken = system_to_user(broken)
        return self._apply(broken, flags).split(cut)

    def _break_markers(self, role: str, content: str, cut: str) -> str:
        """`<|im_end|>` as `<` + cut + `|im_end|>`, so that no piece holds a marker whole."""
        known = self._ready()
        tokens = known.special if role == "assistant" else known.special + known.markers
        present = [re.escape(token) for token in tokens if token in content]
        if not present:
            return content
        return re.sub(rf"(?s)(?={'|'.join(present)})(.)", lambda first: first[1] + cut, content)

    def _apply(self, messages: Messages, flags: Mapping[str, Any]) -> str:
        """The text of a conversation by the model's template."""
        from jinja2 import TemplateError

        turns = [{"role": role, "content": content} for role, content in messages]
        try:
            written = self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, **flags)
        except (TemplateError, ValueError, TypeError, KeyError, IndexError) as error:
            roles = ", ".join(message.role for message in messages)
            raise ConfigError(
                f"the chat template of {self.folder.name} refused a conversation of {roles} ({first_line(error)}); "
                "use other turns, or set `chat_format: plain`"
            ) from error
        return str(written)

    def _accepts_system(self, flags: Mapping[str, Any]) -> bool:
        """Whether the template takes a system prompt and shows it; asked once of the template itself."""
        if self._takes_system is None:
            probe = (Message("system", "be brief 7391"), Message("user", "hello"))
            try:
                self._takes_system = "be brief 7391" in self._apply(probe, flags)
            except ConfigError:
                self._takes_system = False
        return self._takes_system

    def _check_flags(self, flags: Mapping[str, Any]) -> None:
        if not flags:
            return
        if self.chat_format != TEMPLATE:
            raise ConfigError(
                f"{self.folder.name} is prompted in the format {self.chat_format!r}, which has no flags; got {sorted(flags)}"
            )
        source = self._ready().flags
        for flag in flags:
            if flag in _RESERVED or not re.search(rf"\b{re.escape(flag)}\b", source):
                raise ConfigError(f"the chat template of {self.folder.name} has no flag {flag!r}; leave it out")

    def _encode(self, pieces: list[str]) -> list[int]:
        ids: list[int] = []
        for piece in pieces:  # the text brings its own special tokens: adding some here would double the BOS
            ids += self.tokenizer.encode(piece, add_special_tokens=False)
        return ids

    def _with_bos(self, ids: list[int]) -> tuple[int, ...]:
        bos = self.tokenizer.bos_token_id
        if (own := self._ready().bos) is not None and ids[:1] != [own]:
            ids = [own, *ids]
        if bos is not None and ids[:2] == [bos, bos]:
            raise ConfigError(f"the chat template of {self.folder.name} begins with two BOS tokens; mend the template")
        if not ids:
            raise ConfigError(f"an empty prompt cannot be asked of {self.folder.name}; give it a message")
        return tuple(ids)


def plan_room(prompt_tokens: int, max_tokens: int, window: int) -> int:
    """Tokens that a reply may have: `max_tokens`, known to fit.

    A reply is never cut shorter than was asked to make it fit: the same question would then be answered under other
    conditions in a longer debate. Raises `ContextOverflowError` before any call is made.
    """
    if prompt_tokens + max_tokens <= window:
        return max_tokens
    raise ContextOverflowError(
        f"the prompt has {prompt_tokens} tokens and asks for up to {max_tokens} more, which is "
        f"{prompt_tokens + max_tokens - window} over the model's window of {window}; lower max_tokens, show less of what "
        "others said, or use a model with a longer window"
    )


def _chosen(folder: ModelFolder, asked: str | None) -> str:
    if asked is None and folder.has_template:
        return TEMPLATE
    if asked is None:
        if folder.identity not in _announced:
            _announced.add(folder.identity)
            warnings.warn(
                f"{folder.name} has no chat template (a base model): it is prompted in the format {DEFAULT!r}; "
                f"set `chat_format: {DEFAULT}` to agree, or one of {sorted(set(FORMATS) - {DEFAULT})}",
                stacklevel=3,
            )
        return DEFAULT
    known = [TEMPLATE, *FORMATS]
    if asked not in known:
        raise ConfigError(f"unknown chat_format {asked!r}{nearest(asked, known)}; expected one of {known}")
    if asked == TEMPLATE and not folder.has_template:
        raise ConfigError(f"{folder.name} has no chat template; set chat_format to one of {list(FORMATS)}")
    return asked


def _load(folder: ModelFolder, chat_format: str) -> _Loaded:
    transformers = require("transformers", f"the tokenizer of {folder.name}")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder.path), local_files_only=True)
        source = str(tokenizer.get_chat_template()) if chat_format == TEMPLATE else ""
    except Exception as error:
        raise PrerequisiteError(
            f"the tokenizer in {folder.path} cannot be loaded ({first_line(error)}); copy the original tokenizer files there"
        ) from error
    added = [(str(token), token.special) for token in tokenizer.added_tokens_decoder.values()]
    special = dict.fromkeys([token for token, is_special in added if is_special] + tokenizer.all_special_tokens)
    markers = [token for token, _ in added if token not in special and token in source]
    return _Loaded(
        tokenizer,
        tokenizer.bos_token_id if adds_bos(tokenizer) else None,
        tuple(token for token in special if len(token) > 1),
        tuple(token for token in markers if len(token) > 1),
        source,
    )


def _unused(contents: Any) -> str:
    """A private-use character that stands in none of the contents."""
    everything = set().union(*map(set, contents))
    return next(sign for sign in map(chr, range(0xF0000, 0xFFFFD)) if sign not in everything)
