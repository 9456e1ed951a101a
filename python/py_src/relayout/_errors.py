"""Exceptions: one class for each kind. Each message is a sentence that names the file, node, tensor or option."""


class Error(Exception):
    """Every exception that relayout raises on purpose, but ``TypeError`` for arguments of a wrong type."""


class FileError(Error, OSError):
    """The system can't read or write a file."""


class MissingFileError(FileError, FileNotFoundError):
    """There is no such file or folder."""


class ModelError(Error, ValueError):
    """The bytes are no ONNX model, are damaged, or are not a valid model. The message has every problem."""


class ExportError(Error, ValueError):
    """The result can't be written as ONNX."""


class OptionError(Error, ValueError):
    """An option has a value that it can't have."""


class LayoutError(Error, ValueError):
    """A layout of an input or output that is not possible."""


class TargetError(Error, ValueError):
    """There is no such target, or its file can't be read."""


class OtherTargetError(Error, ValueError):
    """The file was made for another target, in operators that are not standard. Optimize the model that it was made from."""


class PlanError(Error, ValueError):
    """No plan can be made for this model and target."""


class UnknownValueError(Error, LookupError):
    """No value has this name where layouts are decided."""


class PermuteError(Error, ValueError):
    """The array can't be permuted so, or not into this output."""


class OnnxRuntimeError(Error, ImportError):
    """ONNX Runtime is not installed, or is not one that can be used."""


class VerifyError(Error, RuntimeError):
    """ONNX Runtime can't load or run a model, so that there is nothing to compare."""


class DifferenceError(Error, ArithmeticError):
    """The result does not compute what its model does. Nothing was written."""


class UnprovedError(Error, ArithmeticError):
    """The result is not proved to compute what its model does, and ``unproved="fail"`` was asked for. Nothing was written."""


class UnprovedWarning(UserWarning):
    """The result is not proved to compute what its model does. Nobody showed that it is wrong."""


class HostError(Error, RuntimeError):
    """The file was made for another host than this one."""


class InternalError(Error, RuntimeError):
    """A defect of relayout; please report it."""
