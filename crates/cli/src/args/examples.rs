//! Examples, as help and man pages show them. A test parses each.

pub(super) const TOP: &str = "Examples:
  relayout doctor model.onnx             # what each target would gain; writes nothing
  relayout optimize model.onnx           # writes model.relayout.onnx beside it
  relayout optimize models/ -o out/      # all models of a folder
  relayout explain model.onnx            # why moves stay
  relayout help optimize                 # all of a command; `relayout man optimize` as a page";

pub(super) const DOCTOR: &str = "Examples:
  relayout doctor                                           # what is here, and what fits it
  relayout doctor model.onnx                                # what each target would gain of it
  relayout doctor model.onnx --seconds 20 --dim N=8";

pub(super) const OPTIMIZE: &str = "Examples:
  relayout optimize model.onnx                              # writes model.relayout.onnx beside it
  relayout optimize model.onnx -o out.onnx --verify         # runs both in ONNX Runtime first
  relayout optimize model.onnx -o out.onnx --html page.html # and a report to look at in a browser
  relayout optimize models/ -o out/ --target ort-cpu        # all models of a folder
  relayout optimize model.onnx --target ort-cpu --tune      # times this model's kernels here first
  relayout optimize 'models/**/*.onnx' --dry-run            # writes nothing
  relayout optimize model.onnx --input 'x:NCHW->NHWC'       # you feed channels last

Exit status: 0 every model was optimized or had nothing to gain, 1 a model failed, 2 usage,
3 --verify found a difference.";

pub(super) const EXPLAIN: &str = "Examples:
  relayout explain model.onnx
  relayout explain model.onnx --target ort-cpu --dim N=1..32
  relayout explain model.onnx --html page.html              # to look at in a browser
  relayout explain model.onnx --why conv1_out               # one value and its layouts
  relayout explain model.onnx --target ort-cpu --pieces     # attentions and normalizations";

pub(super) const AUDIT: &str = "Examples:
  relayout audit model.onnx
  relayout audit before.onnx after.onnx                     # side by side
  relayout audit model.onnx --target ort-cpu --fail-above 5 # status 3 if it is 5 % above";

pub(super) const DIFF: &str = "Examples:
  relayout diff model.onnx model.relayout.onnx
  relayout diff a.onnx b.onnx --format json --exit-code     # for programs; status 3 if they differ";

pub(super) const VERIFY: &str = "Examples:
  relayout verify model.onnx model.relayout.onnx
  relayout verify a.onnx b.onnx --rounds 3 --dim N=4 --exact
  relayout verify a.onnx b.onnx --inputs inputs.npz";

pub(super) const PRINT: &str = "Examples:
  relayout print model.onnx
  relayout print model.onnx --target nhwc --after materialize
  relayout print model.onnx --dot                           # for Graphviz";

pub(super) const CHECK_CERTIFICATE: &str = "Examples:
  relayout optimize model.onnx --certificate model.json
  relayout check-certificate model.onnx --certificate model.json";

pub(super) const SOLVE: &str = "Examples:
  relayout explain model.onnx --problem model.txt           # the problem of a model
  relayout solve model.txt --certificate proof.json
  relayout solve model.txt --check proof.json               # status 3 if it does not hold
  relayout solve model.txt -o model.wcsp                    # for other solvers";

pub(super) const PROVE: &str = "Examples:
  relayout optimize model.onnx -o out.onnx --numerics exact --proof out.json
  relayout prove model.onnx out.onnx --proof out.json       # status 3 if it is not proved
  relayout prove model.onnx simplified.onnx                 # status 3: different, 4: undecided";

pub(super) const CHECK_BUNDLE: &str = "Examples:
  relayout optimize model.onnx --target nhwc --emit bundle  # writes model.bundle beside it
  relayout check-bundle model.bundle";

pub(super) const KERNELS: &str = "Examples:
  relayout kernels model.onnx -o kernels/ --arch sm_90";

pub(super) const CALIBRATE: &str = "Examples:
  relayout calibrate --target ort-cpu -o mine.toml          # minutes; --quick takes less than half
  relayout calibrate --check --costs mine.toml
  relayout optimize model.onnx --target ort-cpu --costs mine.toml";

pub(super) const BENCH: &str = "Examples:
  relayout bench permute
  relayout bench permute --shape 8,64,56,56 --perm 0,2,3,1 --dtype f16 --threads 2 --hot";

pub(super) const TARGETS: &str = "Examples:
  relayout targets
  relayout targets --format json";

pub(super) const OPS: &str = "Examples:
  relayout ops Conv Reshape
  relayout ops --markdown";

pub(super) const RULES: &str = "Examples:
  relayout rules --target ort-cpu
  relayout rules scale_into_conv attention
  relayout rules --markdown";

pub(super) const COMPLETIONS: &str = "Examples:
  relayout completions bash > ~/.local/share/bash-completion/completions/relayout
  relayout completions zsh > ~/.zfunc/_relayout
  relayout completions fish > ~/.config/fish/completions/relayout.fish";

pub(super) const MAN: &str = "Examples:
  relayout man | man -l -
  relayout man optimize | man -l -
  relayout man -o ~/.local/share/man/man1                   # all pages";
