//! CUDA kernels for the moves that a graph has left.
//!
//! [`kernels`] plans every move of a graph, bodies included, and generates its kernel. The result is a [`KernelManifest`] and the files
//! that it names: a `.cu` file has the source of a kernel, a `.json` file says how to start it. A kernel that several moves need
//! is there once. Numeric shapes are in the source. Symbolic shapes are arguments of the launch, computed for the sizes in the
//! manifest; one kernel serves every size for which the same name is generated.
//!
//! Some moves have no kernel: no elements, strings, elements smaller than a byte, padding in an unusual place. The manifest lists
//! them with the reason. The same graph and options give the same bytes.

mod planned;

use planned::{Planned, elem_bytes, planned};
use relayout_codegen::cuda::{Arch, CudaKernel, CudaOptions, KernelClass, Launch, Shape, generate, generate_blocked};
use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, NodeId};
use relayout_target_api::Sizes;
use relayout_target_api::hints::{Hints, Size};
use relayout_target_api::moves::{Moved, moved};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Version of the manifest's form.
pub const MANIFEST_SCHEMA: u32 = 1;

/// Longest name of a kernel that a file is called by; a longer one is cut and made distinct.
const LONGEST_STEM: usize = 150;

/// Options of [`kernels`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KernelOptions {
    /// What the launches say to compile for.
    pub arch: Arch,
    /// Sizes of symbolic dims, by name; the same defaults as for [`crate::optimize`].
    pub dims: BTreeMap<String, Size>,
}

impl Default for KernelOptions {
    /// The oldest architecture, and no sizes.
    fn default() -> KernelOptions {
        KernelOptions { arch: Arch::Sm80, dims: BTreeMap::new() }
    }
}

impl KernelOptions {
    /// For another architecture.
    #[must_use]
    pub fn arch(mut self, arch: Arch) -> KernelOptions {
        self.arch = arch;
        self
    }

    /// With a size for a symbolic dim.
    #[must_use]
    pub fn dim(mut self, name: impl Into<String>, size: Size) -> KernelOptions {
        self.dims.insert(name.into(), size);
        self
    }
}

/// The moves of a graph, and the kernel of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KernelManifest {
    /// Version of this form.
    pub schema: u32,
    /// What the launches say to compile for.
    pub arch: String,
    /// Sizes at which symbolic dims of the moves were taken.
    pub dims: BTreeMap<String, u64>,
    /// The moves, graph by graph, in an order in which they can run.
    pub moves: Vec<MoveKernel>,
    /// The kernels, by name.
    pub kernels: Vec<KernelFile>,
}

/// A move and its kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MoveKernel {
    /// Where the node is: empty for the main graph, the node that holds it and the attribute for a body.
    pub graph: String,
    /// The node's name, which may be empty.
    pub node: String,
    /// `Transpose` or `Relayout`.
    pub op: String,
    /// The tensor that is read.
    pub tensor: String,
    /// The tensor that is written.
    pub result: String,
    /// How the bytes lie before, over the axes of the result.
    pub from: String,
    /// How they lie after.
    pub to: String,
    /// Logical shape of the result, symbols by name; absent where the rank is not known.
    pub shape: Option<Vec<String>>,
    /// The shape at the sizes of the manifest.
    pub sizes: Option<Vec<u64>>,
    /// Element type, where it is known.
    pub dtype: Option<String>,
    /// Bytes of the result, padding included.
    pub bytes: Option<u64>,
    /// Bytes read and bytes written by one run of the kernel.
    pub traffic_bytes: Option<u64>,
    /// Class of the plan: `copy`, `rows`, `transpose`, `pack` or `generic`.
    pub class: Option<String>,
    /// The plan, for people.
    pub plan: Option<String>,
    /// The kernel's name.
    pub kernel: Option<String>,
    /// The file that says how to start the kernel.
    pub launch: Option<String>,
    /// Why there is no kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A kernel and its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KernelFile {
    /// Name of the function.
    pub name: String,
    /// How it works.
    pub class: KernelClass,
    /// File with the source.
    pub source: String,
    /// True where extents are arguments and not part of the source.
    pub shape_in_arguments: bool,
    /// Files that say how to start it, one for each shape.
    pub launches: Vec<String>,
}

/// What a launch file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LaunchFile {
    /// Name of the function.
    pub kernel: String,
    /// File with the source.
    pub source: String,
    /// How to start it.
    #[serde(flatten)]
    pub launch: Launch,
}

impl LaunchFile {
    /// The launch of a kernel whose source is in file `source`.
    pub fn new(kernel: impl Into<String>, source: impl Into<String>, launch: Launch) -> LaunchFile {
        LaunchFile { kernel: kernel.into(), source: source.into(), launch }
    }
}

/// The manifest with all files that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kernels {
    /// The manifest.
    pub manifest: KernelManifest,
    /// Sources by file name.
    pub sources: BTreeMap<String, String>,
    /// Launches by file name.
    pub launches: BTreeMap<String, LaunchFile>,
}

impl Kernels {
    /// All files: names and contents. `manifest.json` is the last.
    ///
    /// # Errors
    /// What serialization reports, which for these types is nothing.
    pub fn files(&self) -> serde_json::Result<Vec<(String, String)>> {
        let mut files: Vec<(String, String)> =
            self.sources.iter().map(|(name, text)| (name.clone(), text.clone())).collect();
        for (name, launch) in &self.launches {
            files.push((name.clone(), serde_json::to_string_pretty(launch)? + "\n"));
        }
        files.push(("manifest.json".to_owned(), serde_json::to_string_pretty(&self.manifest)? + "\n"));
        Ok(files)
    }

    /// Moves that have no kernel.
    pub fn without(&self) -> impl Iterator<Item = &MoveKernel> {
        self.manifest.moves.iter().filter(|m| m.kernel.is_none())
    }
}

/// Makes kernels for every move of a graph that went through the passes: [`crate::Optimized::graph`], or the result of
/// [`crate::optimize_graph`].
pub fn kernels(graph: &Graph, options: &KernelOptions) -> Kernels {
    let hints = Hints::new(&options.dims, graph);
    let mut made =
        Maker { hints, arch: options.arch, symbols: BTreeSet::new(), moves: Vec::new(), kernels: Vec::new() };
    made.graph(graph, "");
    made.finish()
}

/// What is known so far.
struct Maker {
    hints: Hints,
    arch: Arch,
    symbols: BTreeSet<String>,
    moves: Vec<MoveKernel>,
    kernels: Vec<Made>,
}

/// A kernel, and the launches of it, which differ, each with the moves that use it.
struct Made {
    kernel: CudaKernel,
    shape: Shape,
    launches: Vec<(Launch, Vec<usize>)>,
}

impl Maker {
    /// The moves of a graph and of its bodies.
    fn graph(&mut self, graph: &Graph, path: &str) {
        for n in graph.order().unwrap_or_default() {
            if let Some(found) = moved(graph, n) {
                self.add(graph, path, n, &found);
            }
            for (name, attr) in &graph.node(n).attrs {
                for body in attr.bodies() {
                    self.graph(body, &graph.node(n).body_path(graph, path, name));
                }
            }
        }
    }

    fn add(&mut self, graph: &Graph, path: &str, n: NodeId, found: &Moved) {
        let node = graph.node(n);
        let (source, result) = (graph.value(found.source), graph.value(found.result));
        let mut entry = MoveKernel {
            graph: path.to_owned(),
            node: node.name.clone(),
            op: node.onnx().unwrap_or("Relayout").to_owned(),
            tensor: source.name.clone(),
            result: result.name.clone(),
            from: found.left.to_string(),
            to: result.layout.to_string(),
            shape: None,
            sizes: None,
            dtype: result.ty.dtype().map(|dtype| dtype.to_string()),
            bytes: None,
            traffic_bytes: None,
            class: None,
            plan: None,
            kernel: None,
            launch: None,
            why: None,
        };
        let made = match result.ty.shape() {
            None => Err("its rank is not known".to_owned()),
            Some(shape) => {
                self.symbols.extend(shape.iter().flat_map(Dim::symbols));
                let sizes: Vec<u64> = shape.iter().map(|dim| self.hints.extent(dim)).collect();
                entry.shape = Some(shape.iter().map(Dim::to_string).collect());
                entry.sizes = Some(sizes.clone());
                let placed = if shape.iter().all(Dim::is_const) { Shape::Literal } else { Shape::RunTime };
                elem_bytes(result.ty.dtype()).and_then(|elem| {
                    let planned = planned(&found.left, &result.layout, &sizes, elem)?;
                    self.generate(&planned, placed, &mut entry)
                })
            }
        };
        entry.why = made.err();
        self.moves.push(entry);
    }

    /// The kernel of a planned move, noted with the move that is about to be added.
    fn generate(&mut self, planned: &Planned, shape: Shape, entry: &mut MoveKernel) -> Result<(), String> {
        let mut options = CudaOptions::default();
        (options.arch, options.shape) = (self.arch, shape);
        let (class, text, kernel) = match planned {
            Planned::Permuted(plan) => (plan.class().as_str(), plan.to_string(), generate(plan, &options)),
            Planned::Blocked(plan) => ("pack", plan.to_string(), generate_blocked(plan, &options)),
        };
        (entry.class, entry.plan) = (Some(class.to_owned()), Some(text));
        let kernel = kernel.map_err(|error| error.to_string())?;
        entry.bytes = Some(kernel.launch.destination_bytes);
        entry.traffic_bytes = Some(kernel.launch.moved_bytes);
        entry.kernel = Some(kernel.name.clone());
        let (user, launch) = (self.moves.len(), kernel.launch.clone());
        match self.kernels.iter_mut().find(|known| known.kernel.name == kernel.name) {
            Some(known) => match known.launches.iter_mut().find(|(known, _)| *known == launch) {
                Some((_, users)) => users.push(user),
                None => known.launches.push((launch, vec![user])),
            },
            None => self.kernels.push(Made { kernel, shape, launches: vec![(launch, vec![user])] }),
        }
        Ok(())
    }

    /// Names the files.
    fn finish(mut self) -> Kernels {
        self.kernels.sort_by(|a, b| a.kernel.name.cmp(&b.kernel.name));
        let (mut files, mut sources, mut launches) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for Made { kernel, shape, launches: starts } in self.kernels {
            let stem = stem(&kernel.name);
            let source = format!("{stem}.cu");
            let mut names = Vec::new();
            for (at, (launch, users)) in starts.into_iter().enumerate() {
                let name = if at == 0 { format!("{stem}.json") } else { format!("{stem}.{}.json", at + 1) };
                for user in users {
                    if let Some(entry) = self.moves.get_mut(user) {
                        entry.launch = Some(name.clone());
                    }
                }
                names.push(name.clone());
                launches.insert(name, LaunchFile { kernel: kernel.name.clone(), source: source.clone(), launch });
            }
            files.push(KernelFile {
                name: kernel.name,
                class: kernel.class,
                source: source.clone(),
                shape_in_arguments: shape == Shape::RunTime,
                launches: names,
            });
            sources.insert(source, kernel.source);
        }
        let dims = self.symbols.into_iter().map(|name| {
            let size = self.hints.extent(&Dim::symbol(&name));
            (name, size)
        });
        let manifest = KernelManifest {
            schema: MANIFEST_SCHEMA,
            arch: self.arch.as_str().to_owned(),
            dims: dims.collect(),
            moves: self.moves,
            kernels: files,
        };
        Kernels { manifest, sources, launches }
    }
}

/// What the files of a kernel are called: its name, or where that is too long for a file its beginning and a sum of all of it.
fn stem(name: &str) -> String {
    // Names are ASCII, so every place is a border of characters.
    match name.get(..LONGEST_STEM).filter(|_| name.len() > LONGEST_STEM) {
        None => name.to_owned(),
        Some(head) => {
            // FNV-1a, 64 bits.
            let sum = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
                (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            });
            format!("{head}_{sum:016x}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relayout_ir::dtype::DType;
    use relayout_ir::graph::{Node, Op};
    use relayout_ir::layout::Layout;
    use relayout_ir::types::Type;

    fn dims(text: &[&str]) -> Vec<Dim> {
        text.iter().map(|dim| dim.parse().expect("a dim")).collect()
    }

    /// A graph of Relayouts, one for each: name, shape, element type, layouts.
    fn graph(moves: &[(&str, &[&str], DType, &str, &str)]) -> Graph {
        let mut graph = Graph::new("g");
        for (name, shape, dtype, from, to) in moves {
            let ty = Type::tensor(*dtype, dims(shape));
            let x = graph.add_input(format!("{name}.x"), ty.clone()).expect("a new name");
            *graph.value_mut(x).layout = from.parse().expect("a layout");
            let node = Node::new(Op::Relayout, vec![Some(x)]);
            let y = graph.add_single(node, (*name).to_owned(), ty).expect("a new name");
            *graph.value_mut(y).layout = to.parse().expect("a layout");
            graph.add_output(y);
        }
        graph
    }

    fn class(found: &Kernels, at: usize) -> &str {
        found.manifest.moves[at].class.as_deref().unwrap_or("none")
    }

    #[test]
    fn moves_that_are_alike_share_a_kernel_and_a_launch() {
        let shape: &[&str] = &["1", "64", "56", "56"];
        let graph = graph(&[
            ("a", shape, DType::F32, "NCHW", "NHWC"),
            ("b", shape, DType::I32, "NCHW", "NHWC"),
            ("c", shape, DType::F32, "NHWC", "NCHW"),
        ]);
        let found = kernels(&graph, &KernelOptions::default());
        let moves = &found.manifest.moves;
        assert_eq!((moves[0].kernel.as_ref(), &moves[0].launch), (moves[1].kernel.as_ref(), &moves[1].launch));
        assert_ne!(moves[0].kernel, moves[2].kernel);
        assert_eq!((found.sources.len(), found.launches.len()), (2, 2));
        assert_eq!((moves[0].bytes, moves[0].traffic_bytes), (Some(802_816), Some(1_605_632)));
        assert!(found.manifest.kernels.iter().all(|kernel| !kernel.shape_in_arguments));
    }

    #[test]
    fn blocks_are_packed_and_unpacked_with_padding_and_without() {
        let graph = graph(&[
            ("exact", &["2", "32", "7", "7"], DType::F32, "NCHW", "NCHW16c"),
            ("padded", &["2", "20", "7", "7"], DType::F32, "NCHW", "NCHW16c"),
            ("unpacked", &["2", "20", "7", "7"], DType::F16, "NCHW8c", "NCHW"),
            ("between", &["2", "32", "7", "7"], DType::F32, "NCHW16c", "NCHW8c"),
            ("last", &["2", "32", "7", "7"], DType::F32, "NHWC", "NCHW16c"),
            ("odd", &["2", "20", "7", "7"], DType::F32, "NHWC", "NCHW16c"),
        ]);
        let found = kernels(&graph, &KernelOptions::default());
        let classes: Vec<&str> = (0..6).map(|at| class(&found, at)).collect();
        assert_eq!(classes, ["pack", "pack", "pack", "rows", "rows", "none"]);
        let moves = &found.manifest.moves;
        assert_eq!((moves[1].bytes, moves[2].bytes), (Some(2 * 32 * 49 * 4), Some(2 * 20 * 49 * 2)));
        let left: Vec<&str> = found.without().map(|m| m.result.as_str()).collect();
        assert_eq!(left, ["odd"]);
        assert!(moves[5].why.as_deref().is_some_and(|why| why.contains("pads")), "{:?}", moves[5].why);
    }

    #[test]
    fn channels_that_are_padded_at_the_end_are_packed_and_unpacked_as_one_block() {
        let graph = graph(&[
            ("padded", &["2", "3", "7", "5"], DType::F32, "NCHW", "N H W C[3:4]"),
            ("cropped", &["2", "20", "7", "5"], DType::F16, "N H W C[20:24]", "NCHW"),
            ("same", &["2", "3", "7", "5"], DType::F32, "NCHW", "NCHW4c"),
            ("turned", &["2", "3", "7", "5"], DType::F32, "NCHW", "N W H C[3:4]"),
            ("two", &["2", "8", "7", "5"], DType::F32, "NCHW", "N H W C[3:4,5:8]"),
            ("shortened", &["2", "9", "7", "5"], DType::F32, "N H W C[9:12]", "NHWC"),
            ("lengthened", &["2", "9", "7", "5"], DType::F32, "NWHC", "N W H C[9:12]"),
            ("outside", &["2", "9", "7", "5"], DType::F32, "N C[9:12] H W", "NCHW"),
        ]);
        let found = kernels(&graph, &KernelOptions::default());
        let classes: Vec<&str> = (0..8).map(|at| class(&found, at)).collect();
        assert_eq!(classes, ["pack", "pack", "pack", "none", "none", "pack", "pack", "none"]);
        let moves = &found.manifest.moves;
        assert_eq!((moves[0].bytes, moves[1].bytes), (Some(2 * 35 * 4 * 4), Some(2 * 35 * 20 * 2)));
        assert_eq!((moves[5].bytes, moves[6].bytes), (Some(70 * 9 * 4), Some(70 * 12 * 4)));
        // Three channels fill less than one block either way, so the bytes are the same.
        assert_eq!((&moves[0].kernel, &moves[0].launch), (&moves[2].kernel, &moves[2].launch));
        let offset = |layout: &str, at: [u64; 4]| {
            let layout: Layout = layout.parse().expect("a layout");
            layout.bind(&[2, 3, 7, 5]).expect("it fits").offset(&at)
        };
        for at in [[0, 0, 0, 0], [1, 2, 6, 4], [0, 1, 3, 2]] {
            assert_eq!(offset("N H W C[3:4]", at), offset("NCHW4c", at));
        }
    }

    #[test]
    fn symbolic_shapes_are_arguments_and_share_the_source_but_not_the_launch() {
        let graph = graph(&[
            ("a", &["N", "64", "H", "H"], DType::F32, "NCHW", "NHWC"),
            ("b", &["N", "64", "2*H", "2*H"], DType::F32, "NCHW", "NHWC"),
        ]);
        let options = KernelOptions::default().dim("H", Size::of(32)).dim("N", Size::of(4)).arch(Arch::Sm90);
        let found = kernels(&graph, &options);
        assert_eq!(found.manifest.dims, BTreeMap::from([("H".to_owned(), 32), ("N".to_owned(), 4)]));
        assert_eq!(found.manifest.moves[1].sizes, Some(vec![4, 64, 64, 64]));
        let [kernel] = found.manifest.kernels.as_slice() else { panic!("{:?}", found.manifest.kernels) };
        assert!(kernel.shape_in_arguments && kernel.launches.len() == 2, "{kernel:?}");
        assert!(found.launches.values().all(|file| file.launch.arch == "sm_90" && !file.launch.arguments.is_empty()));
    }

    #[test]
    fn what_has_no_kernel_says_why() {
        let graph = graph(&[
            ("strings", &["2", "3"], DType::String, "MN", "NM"),
            ("nibbles", &["2", "3"], DType::I4, "MN", "NM"),
            ("empty", &["0", "3"], DType::F32, "MN", "NM"),
        ]);
        let found = kernels(&graph, &KernelOptions::default());
        let why = |at: usize| found.manifest.moves[at].why.clone().unwrap_or_default();
        assert!(why(0).contains("strings") && why(1).contains("4 bits"), "{} {}", why(0), why(1));
        assert_eq!(found.manifest.moves.len(), 2, "nothing to move is no move");
        assert!(found.sources.is_empty() && found.files().is_ok_and(|files| files.len() == 1));
    }

    #[test]
    fn long_names_make_files_of_their_own() {
        let (long, other) = ("k".repeat(300), "k".repeat(301));
        assert_ne!(stem(&long), stem(&other));
        assert!(stem(&long).len() < 200 && stem("short") == "short");
    }
}
