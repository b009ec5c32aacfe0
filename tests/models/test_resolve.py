from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from collabsim.errors import ConfigError, PrerequisiteError
from collabsim.identity import identity_of
from collabsim.models import resolve
from collabsim.models.chat.server import ServerModel
from collabsim.models.resolve import ModelSpec, resolve_model
from collabsim.models.simulation.simulated import SimulatedModel

READY = FakeListChatModel(responses=["ready"])
NUMBER = 3


def make(text: str, times: int = 1) -> BaseChatModel:
    return FakeListChatModel(responses=[text] * times)


def make_nothing() -> str:
    return "no model"


def make_any(**options: str) -> BaseChatModel:
    return FakeListChatModel(responses=[str(options)])


class Identified(FakeListChatModel):
    @property
    def identity(self) -> str:
        return f"mine:{self.responses}"


HERE = f"python:{__name__}"


def test_a_simulated_model_takes_its_parameters_as_options():
    model = resolve_model("simulated:", options={"skill": 1.0, "conformity": 0.3})
    assert isinstance(model, SimulatedModel)
    assert (model.skill, model.conformity) == (1.0, 0.3)


def test_the_text_after_simulated_names_the_model():
    assert resolve_model("simulated:bob").name == "bob"


def test_an_openai_spec_names_the_served_model_and_its_address():
    model = resolve_model("openai:org/my-model:v1", base_url="http://h/v1", revision="2", options={"timeout": 5})
    assert isinstance(model, ServerModel)
    assert (model.model, model.base_url, model.revision, model.timeout) == ("org/my-model:v1", "http://h/v1", "2", 5.0)


def test_equal_specs_give_equal_identities_whatever_the_seat():
    for spec, more in (("simulated:", {"options": {"skill": 1}}), ("openai:m", {"base_url": "http://h/v1"})):
        first, second = (resolve_model(spec, name=name, **more) for name in "ab")
        assert first is not second
        assert identity_of(first) == identity_of(second)


def test_a_python_spec_may_name_a_ready_model():
    assert resolve_model(f"{HERE}:READY") is READY
    assert identity_of(READY) is None


def test_a_python_spec_may_name_a_factory_that_takes_the_options():
    assert resolve_model(f"{HERE}:make", options={"text": "hi", "times": 2}).responses == ["hi", "hi"]


def test_a_factory_with_open_keywords_takes_any_option():
    assert resolve_model(f"{HERE}:make_any", options={"anything": "x"}).responses == ["{'anything': 'x'}"]


def test_a_python_spec_may_name_a_class_and_keeps_its_identity():
    model = resolve_model(f"{HERE}:Identified", options={"responses": ["a"]})
    assert identity_of(model) == "mine:['a']"


@pytest.mark.parametrize(
    ("spec", "arguments", "words"),
    [
        ("simulated:", {"options": {"conformty": 0.3}}, ["'conformty'", "'conformity'"]),
        ("openai:m", {"options": {"time_out": 3}}, ["'time_out'", "'timeout'"]),
        ("simulated:", {"options": {"conformity": 3}}, ["conformity", "3"]),
        ("simulated:", {"options": {"skill": {"algebra": 1}}}, ["skill", "default"]),
        ("openai:m", {"options": {"concurrency": 0}}, ["concurrency", "0"]),
        ("openai:", {}, ["openai:NAME"]),
        ("openai:m", {"options": {"base_url": "x"}}, ["base_url", "beside"]),
        ("simulated:", {"base_url": "http://h"}, ["base_url", "leave it out"]),
        ("simulated:", {"revision": "2"}, ["revision"]),
        ("simulated:", {"engine": "vllm"}, ["engine"]),
        (f"{HERE}:READY", {"options": {"x": 1}}, ["without options"]),
        (f"{HERE}:REDY", {}, ["REDY", "'READY'"]),
        (f"{HERE}:make", {"options": {"text": "a", "tims": 2}}, ["'tims'", "'times'"]),
        (f"{HERE}:make", {}, ["text"]),
        (f"{HERE}:make_nothing", {}, ["chat model", "str"]),
        (f"{HERE}:NUMBER", {}, ["chat model", "int"]),
        ("python:nocolon", {}, ["package.module:attribute"]),
        ("", {}, ["simulated:"]),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line_that_names_the_seat(spec, arguments, words):
    with pytest.raises(ConfigError) as caught:
        resolve_model(spec, name="solver", **arguments)
    message = str(caught.value)
    assert all(word in message for word in ["'solver'", *words])
    assert "\n" not in message


@pytest.mark.parametrize("spec", ["opnai:m", "hub:x"])
def test_a_scheme_that_is_not_there_says_which_are(spec):
    with pytest.raises(PrerequisiteError, match=r"simulated:, openai:, python:") as caught:
        resolve_model(spec)
    assert spec in str(caught.value)


def test_a_missing_module_is_a_prerequisite():
    with pytest.raises(PrerequisiteError, match="no_such_package"):
        resolve_model("python:no_such_package.models:make")


def test_a_new_scheme_is_one_entry(monkeypatch):
    def echo(model: ModelSpec) -> BaseChatModel:
        return FakeListChatModel(responses=[model.target, model.engine])

    monkeypatch.setitem(resolve.SCHEMES, "echo", echo)
    assert resolve_model("echo:a:b", engine="fast").responses == ["a:b", "fast"]


def echo_of_a_package(model: ModelSpec) -> BaseChatModel:
    return FakeListChatModel(responses=[f"package {model.target}"])


def test_a_package_adds_a_scheme_by_an_entry_point(monkeypatch):
    points = {"echo": EntryPoint("echo", f"{__name__}:echo_of_a_package", resolve.GROUP)}
    monkeypatch.setattr(resolve, "registered", lambda group: points if group == resolve.GROUP else {})
    assert resolve_model("echo:a:b").responses == ["package a:b"]
    with pytest.raises(PrerequisiteError, match=r"did you mean 'echo'.*package:, echo:"):
        resolve_model("ehco:a")


def test_importing_the_module_loads_no_framework():
    script = (
        "import sys, collabsim.models.resolve\n"
        "print([m for m in ('langchain_core', 'langchain_openai', 'openai', 'numpy', 'scipy', 'torch') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_simulated_model_is_made_without_loading_the_openai_client():
    script = (
        "import sys; from collabsim.models.resolve import resolve_model as r\n"
        "r('simulated:'); r('openai:m', base_url='http://h/v1').identity\n"
        "print([m for m in ('langchain_openai', 'openai') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_local_model_takes_the_settings_of_its_engine_as_options(tmp_path):
    model = resolve_model(str(tmp_path), options={"dtype": "float32", "max_model_len": 64, "chat_format": "plain"})
    assert (model.dtype, model.max_model_len, model.chat_format) == ("float32", 64, "plain")


@pytest.mark.parametrize("spec", ["~nobody9/model", "~nobody9:model"])
def test_a_home_folder_of_nobody_is_refused_before_anything_is_loaded(spec):
    with pytest.raises(
        ConfigError, match=r"model of 'a': '~nobody9.model' begins with a home folder that cannot be found"
    ):
        resolve_model(spec, name="a")
