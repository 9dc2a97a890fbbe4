"""How numba compiles a kernel that other kernels call: only as a part of them.

numba makes a library of machine code of every function, with a wrapper that unpacks the arguments
of a call from Python, and builds its code into each caller besides, where it is optimized again.
Kernels that only kernels call need none of the first. So every kernel has a twin, which is what
other kernels see: typed and translated as usual, but optimized and turned into machine code only
within its callers. It is cached like all others, as bitcode.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from numba._dynfunc import make_function
from numba.core import sigutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import NativeLowering


class PartLibrary(JITCodeLibrary):
    """The code of a part, to be linked into other libraries; there is no machine code of it."""

    def finalize(self) -> None:
        """Link what this code calls, and leave the rest to the callers."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002
        """Return 0: no function of a part has an address."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """Return the bitcode, since there is no object code."""
        found: tuple[str, str, bytes] = self.serialize_using_bitcode()
        return found

    @classmethod
    def from_bitcode(cls, codegen: Any, name: str, bitcode: bytes) -> PartLibrary:
        """Make a library of what `serialize_using_object_code` has returned."""
        library = cls(codegen, name)
        library._final_module = llvm.parse_bitcode(bitcode)
        library._finalize_dynamic_globals()
        library._finalized = True
        return library


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """Translate a function to LLVM's language, without a wrapper and without machine code."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Fill in ``state["cr"]``, as the original does."""
        context = state.targetctx
        state.library = PartLibrary(context.codegen(), state.func_id.func_qualname)
        for flag in ("no_compile", "no_cpython_wrapper", "no_cfunc_wrapper"):
            setattr(state.flags, flag, True)
        super().run_pass(state)
        state.library._ensure_finalized()
        lowered = state["cr"]
        entry = _entry(lowered.fndesc, lowered.env, state.library)
        context.insert_user_function(entry, lowered.fndesc, [state.library])
        state.reload_init.extend(state.library._reload_init)
        state["cr"] = lowered._replace(cfunc=entry)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class WholeLowering(NativeLowering):
    """Generate machine code as usual; then set the environments of the parts that are in it."""

    _name = "whole_lowering"

    def run_pass(self, state: Any) -> bool:
        """Fill in ``state["cr"]``, as the original does."""
        super().run_pass(state)
        for variable in state.library._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                state.library.codegen.set_env(variable.name, environment)
        return True


def _entry(fndesc: Any, environment: Any, library: PartLibrary) -> Any:
    """Make what stands for a part in numba's tables; it cannot be called."""
    module, name = fndesc.lookup_module(), fndesc.qualname.rpartition(".")[2]
    return make_function(module, name, "a part of others", 0, environment, (library,))


def _pipelines(state: Any, lowering: type[NativeLowering]) -> list[PassManager]:
    """Return numba's own passes, with another one for lowering."""
    manager = DefaultPassBuilder.define_nopython_pipeline(state)
    manager.passes[:] = [
        (lowering if made is NativeLowering else made, text) for made, text in manager.passes
    ]
    manager._finalized = False
    manager.finalize()
    return [manager]


class Part(CompilerBase):
    """The compiler of parts."""

    def define_pipelines(self) -> list[PassManager]:
        """Return the passes."""
        return _pipelines(self.state, PartLowering)


class Whole(CompilerBase):
    """The compiler of kernels that Python calls."""

    def define_pipelines(self) -> list[PassManager]:
        """Return the passes."""
        return _pipelines(self.state, WholeLowering)


class PartCacheImpl(CompileResultCacheImpl):
    """Reads parts back without generating machine code."""

    def rebuild(self, target_context: Any, payload: Any) -> CompileResult:
        """Return what `reduce` was given."""
        (name, _, bitcode), fndesc, environment, signature, *rest = payload
        objectmode, lifted, annotation, reload_init, referenced = rest
        for function in reload_init:
            function()
        library = PartLibrary.from_bitcode(target_context.codegen(), name, bitcode)
        fields: dict[str, Any] = {
            "typing_context": target_context.typing_context,
            "target_context": target_context,
            "entry_point": _entry(fndesc, environment, library),
            "typing_error": None,
            "type_annotation": annotation,
            "signature": signature,
            "objectmode": objectmode,
            "lifted": lifted,
            "fndesc": fndesc,
            "library": library,
            "call_helper": None,
            "environment": environment,
            "metadata": None,
            "reload_init": reload_init,
            "referenced_envs": referenced,
        }
        return CompileResult(**fields)


class PartCache(FunctionCache):
    """The files of a function's parts, which have an index of their own."""

    _impl_class = PartCacheImpl

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        for name in ("_index_name", "_index_path"):
            path = getattr(self._cache_file, name).removesuffix(".nbi")
            setattr(self._cache_file, name, f"{path}.part.nbi")


def show_as_part(kernel: Any, twin: Any) -> None:
    """Let other kernels see the twin of a kernel, unless this process has compiled the kernel."""
    whole_template, whole_overload = kernel.get_call_template, kernel.get_overload

    def get_call_template(args: Any, kws: Any) -> Any:
        types = tuple(kernel.fold_argument_types(args, kws)[1])
        if types in kernel.overloads and types not in twin.overloads:
            return whole_template(args, kws)
        return twin.get_call_template(args, kws)

    def get_overload(signature: Any) -> Any:
        types = tuple(sigutils.normalize_signature(signature)[0])
        return twin.get_overload(types) if types in twin.overloads else whole_overload(types)

    kernel.get_call_template, kernel.get_overload = get_call_template, get_overload
    twin._compiling_counter = kernel._compiling_counter  # for kernels that call themselves
