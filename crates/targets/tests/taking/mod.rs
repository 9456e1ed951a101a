//! Cases of forms, `form_cases/FAMILY/FORM/{hit,miss}_*.txt`, and a target that takes one offer whatever it costs.
//!
//! A case is a graph whose first line ends with a comment, `; target=NAME at=%y: what is shown`. The form is asked at the node that
//! leaves `%y`. Words that may stand before the colon: `exact`, where the form moves or picks data and results are the same bits;
//! `beside`, where the other nodes make their offers too, because the form's are for layouts that these ask for; `with=%a,%b` names the
//! results of the other nodes that the form stands for.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod measured;

use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Handover, Node, Op, OpName, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::model::Model;
use relayout_ir::patch::remove_dead;
use relayout_ir::raised;
use relayout_ir::text::parse;
use relayout_passes::pipeline::{Outcome, PipelineOptions, run_steps, steps};
use relayout_target_api::{
    Candidates, Capabilities, Cost, Lifted, MoveQuery, NodeQuery, Offer, OpQuery, Pass, PassError, Target, TargetForm,
};
use relayout_targets::{BUILTIN, Block, OrtCpu, OrtNhwc, Provider, builtin};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// What a node costs that is to take an offer, as long as it takes none: more than all moves around it.
const DEAR: Cost = Cost::new(1 << 50);

/// A case of a form.
pub(crate) struct Case {
    pub(crate) path: PathBuf,
    /// The targets whose form it is.
    pub(crate) family: String,
    pub(crate) form: String,
    /// The graph as text.
    pub(crate) graph: String,
    /// The name of the target for which it is told.
    pub(crate) target: String,
    /// The name of the result of the node at which the form is asked.
    pub(crate) at: String,
    /// The names of the results of the other nodes of the piece.
    pub(crate) with: Vec<String>,
    pub(crate) exact: bool,
    pub(crate) beside: bool,
}

impl Case {
    pub(crate) fn read(path: &Path) -> Case {
        let text = fs::read_to_string(path).unwrap();
        let graph = text.split("==>").next().unwrap().trim_end().to_owned() + "\n";
        let comment = graph.lines().next().unwrap().split_once(" ; ").map_or("", |(_, comment)| comment);
        let words: Vec<&str> = comment.split(':').next().unwrap().split_whitespace().collect();
        let said = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)).map(str::to_owned);
        let missing = |key: &str| format!("{}: its first line says no `{key}`", path.display());
        let folder = |up: usize| path.ancestors().nth(up).unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        Case {
            path: path.to_owned(),
            family: folder(2),
            form: folder(1),
            target: said("target=").unwrap_or_else(|| panic!("{}", missing("target="))),
            at: said("at=%").unwrap_or_else(|| panic!("{}", missing("at=%"))),
            with: said("with=").map_or(Vec::new(), |names| names.split(',').map(|name| name[1..].to_owned()).collect()),
            exact: words.contains(&"exact"),
            beside: words.contains(&"beside"),
            graph,
        }
    }

    /// The same case with this type in place of float32. Scales of an image are float32 whatever it is.
    pub(crate) fn in_type(&self, dtype: &str) -> Case {
        let of_type = |line: &str| {
            let stays = ["%doubled:", "%uneven:"].iter().any(|name| line.trim_start().starts_with(name));
            let mut line = if stays { line.to_owned() } else { line.replace("f32[", &format!("{dtype}[")) };
            // Before that operator set most ops do not have the type.
            if dtype == "bf16" {
                for older in ["17", "19", "21"] {
                    line = line.replace(&format!("opset={older} "), "opset=22 ");
                }
            }
            line + "\n"
        };
        let graph = self.graph.lines().map(of_type).collect();
        let (path, family, form) = (self.path.clone(), self.family.clone(), self.form.clone());
        let (target, at, with) = (self.target.clone(), self.at.clone(), self.with.clone());
        Case { path, family, form, graph, target, at, with, exact: self.exact, beside: self.beside }
    }

    /// `FORM/hit_NAME`.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}/{}", self.family, self.form, self.file())
    }

    /// The names of the results of the nodes that the form stands for.
    pub(crate) fn piece(&self) -> impl Iterator<Item = &str> {
        self.with.iter().map(String::as_str).chain([self.at.as_str()])
    }

    pub(crate) fn is_hit(&self) -> bool {
        self.file().starts_with("hit_")
    }

    fn file(&self) -> &str {
        self.path.file_stem().unwrap().to_str().unwrap()
    }

    /// The target with its node of interest.
    pub(crate) fn asks<'t>(&self, target: &'t dyn Target) -> Taking<'t> {
        let (form, at) = (self.form.clone(), self.at.clone());
        Taking { target, form, at, beside: self.beside, taken: None, change: None, asked: Mutex::new(Vec::new()) }
    }

    /// The same where an offer is taken.
    pub(crate) fn takes<'t>(&self, target: &'t dyn Target, offer: &Offer) -> Taking<'t> {
        Taking { taken: Some(offer.clone()), ..self.asks(target) }
    }

    /// What the form offers at the node.
    pub(crate) fn offered(&self, target: &dyn Target) -> Result<Vec<Offer>, String> {
        let asks = self.asks(target);
        self.run(&asks)?;
        Ok(asks.offered())
    }

    /// The graph in which an offer is written; `None` for an offer that is a way to run the nodes as they are in the file, which a trial
    /// prices and nobody writes.
    pub(crate) fn written(&self, target: &dyn Target, offer: &Offer) -> Result<Option<Graph>, String> {
        let (graph, outcome) = self.run(&self.takes(target, offer))?;
        let file = self.parsed();
        let has = |name: &OpName| file.nodes().any(|n| op_name(file.node(n)) == Some(name));
        let is_kernel = |node: &Node| match (&offer.becomes, op_name(node), &node.form) {
            // Signals are images by then, whose layouts are others.
            (Some(becomes), Some(name), Form::Kernel(layouts)) => {
                *name == becomes.op && (layouts.outs == offer.layouts.outs || !has(name))
            }
            _ => false,
        };
        let by_rule = outcome.graphs.iter().any(|graph| !graph.rewrites.is_empty());
        let by_form = outcome.written.iter().any(|(_, written)| written.form == self.form);
        if by_form || by_rule || graph.nodes().any(|n| is_kernel(graph.node(n))) {
            return Ok(Some(graph));
        }
        let is_raised = offer.becomes.as_ref().is_some_and(|becomes| becomes.op.domain == raised::DOMAIN);
        if is_raised { Ok(None) } else { Err(format!("{} is not taken:\n{graph}", told(offer))) }
    }

    /// The graph after the pass that writes forms.
    fn run(&self, target: &Taking<'_>) -> Result<(Graph, Outcome), String> {
        let opset = self.graph.split_once("opset=").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
        let opsets = BTreeMap::from([(String::new(), opset.unwrap())]);
        let mut model = Model { graph: self.parsed(), opsets, ..Model::default() };
        let all = steps(target).unwrap();
        let last = all.iter().position(|step| step.is.name == "write_forms").unwrap();
        let outcome = run_steps(&mut model, target, &PipelineOptions::default(), &all[..=last]);
        Ok((model.graph, outcome.map_err(|e| e.to_string())?))
    }

    /// The graph; its constants have elements.
    pub(crate) fn parsed(&self) -> Graph {
        let mut graph = parse(&self.graph).unwrap_or_else(|e| panic!("{}: {e}", self.name()));
        fill(&mut graph);
        graph
    }
}

/// Every case, in the order of their names, as they were when they were first asked for.
pub(crate) fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../targets/tests/form_cases");
        let paths = entries(&folder).into_iter().flat_map(|family| entries(&family)).flat_map(|form| entries(&form));
        paths.map(|path| Case::read(&path)).collect()
    })
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The folder of the cases of a target's forms.
pub(crate) fn family(target: &dyn Target) -> &'static str {
    match target.name() {
        "onnx" => "onnx",
        "ort-cpu" => "ort-cpu",
        "ort-nhwc" => "ort-nhwc",
        _ => "functions",
    }
}

/// The built-in targets, and `ort-nhwc` for a provider with other forms, without and with ops that only it has.
pub(crate) fn targets() -> Vec<Box<dyn Target>> {
    BUILTIN.iter().copied().chain(["ort-nhwc/cuda", "ort-nhwc/cuda+com.microsoft"]).map(target).collect()
}

/// A target by its name; `ort-cpu/16` has that block, `ort-nhwc/cuda` is for that provider, and
/// `ort-nhwc/cuda+com.microsoft` for those who allow that domain.
pub(crate) fn target(name: &str) -> Box<dyn Target> {
    match name.split_once('/') {
        Some(("ort-cpu", block)) => Box::new(OrtCpu::new(Block::of(block.parse().unwrap()).unwrap()).unwrap()),
        Some((_, provider)) => {
            let (name, allowed) = provider.split_once('+').map_or((provider, None), |(name, of)| (name, Some(of)));
            let provider = Provider::of(name).unwrap();
            Box::new(OrtNhwc::of(allowed.map_or(provider.clone(), |of| provider.allowing(of).unwrap())))
        }
        None => builtin(name).unwrap(),
    }
}

/// What has no kernel of bfloat16 in the runtime: convolutions, Einsum, and the normalization of com.microsoft.
const NOT_OF_BRAIN_FLOATS: &[&str] = &["projection/hit_over_heads", "turned_product/", "contributed_group_norm/"];

/// Whether a case that gets an offer of float32 need not get it of this type.
pub(crate) fn lacks_kernels(case: &Case, dtype: &str) -> bool {
    dtype == "bf16" && NOT_OF_BRAIN_FLOATS.iter().any(|name| case.name().contains(name))
}

/// Gives constants elements: bytes are 0 to 7. A single float is 1/2, others lie between -1 and 1. Those of a value that is called
/// `positive` lie between 1/2 and 3/2, so that they can be divided by; that of one that is called `large` is 16, and those of `doubled`
/// scale an image by two, those of `uneven` by one and a half and by two.
fn fill(graph: &mut Graph) {
    for v in graph.values().collect::<Vec<ValueId>>() {
        let Some(c) = graph.constant(v).filter(|c| c.source.bytes().is_err()) else { continue };
        let filled = filled(c, &graph.value(v).name);
        let maker = graph.value(v).producer().0;
        let node: Node = Node::constant(filled, graph.node(maker).rank);
        let (ty, readers) = (graph.value(v).ty.clone(), Handover::everything(graph, v));
        let name = graph.fresh_name("filled");
        let by = graph.add_single(node, name, ty).unwrap();
        graph.hand_over(readers, by);
        remove_dead(graph, [maker]);
    }
}

fn filled(c: &Constant, name: &str) -> Constant {
    let (dims, count) = (c.dims.clone(), c.elems().unwrap());
    // In 0..1009, in an order that has nothing to do with any layout.
    let step = |i: u64| i.wrapping_mul(2_654_435_761) % 1009;
    if matches!(c.dtype, DType::U8 | DType::I8) {
        let bytes: Vec<u8> = (0..count).map(|i| (step(i) % 8) as u8).collect();
        return Constant::inline(c.dtype, dims, bytes.into());
    }
    let element = |i: u64| match (name, count) {
        ("large", _) => 16.0,
        ("doubled", _) => [1.0, 1.0, 2.0, 2.0][i as usize % 4],
        ("uneven", _) => [1.0, 1.0, 1.5, 2.0][i as usize % 4],
        ("positive", _) => 0.5 + step(i) as f64 / 1009.0,
        (_, 1) => 0.5,
        _ => step(i) as f64 / 504.5 - 1.0,
    };
    let bytes = |of: &dyn Fn(f64) -> Vec<u8>| (0..count).flat_map(|i| of(element(i))).collect::<Vec<u8>>();
    let bytes = match c.dtype {
        DType::F64 => bytes(&|x| x.to_le_bytes().to_vec()),
        DType::F16 => bytes(&|x| half_bits(x).to_le_bytes().to_vec()),
        DType::BF16 => bytes(&|x| ((x as f32).to_bits() >> 16).to_le_bytes()[..2].to_vec()),
        _ => Vec::new(),
    };
    if !bytes.is_empty() {
        return Constant::inline(c.dtype, dims, bytes.into());
    }
    assert_eq!(c.dtype, DType::F32, "`{name}` is of a type that cases have no elements for");
    Constant::floats((0..count).map(element), &dims)
}

/// A number from 2^-14 to 65504, or its negative, as a half; what does not fit is cut off.
fn half_bits(x: f64) -> u16 {
    let bits = (x as f32).to_bits();
    let (sign, exponent, digits) = (bits >> 31, bits >> 23 & 0xff, bits >> 13 & 0x3ff);
    assert!((113..143).contains(&exponent), "{x} is no number of cases of halves");
    (sign << 15 | (exponent - 112) << 10 | digits) as u16
}

/// A target of which one node takes one offer of one form, and no other node takes any.
pub(crate) struct Taking<'t> {
    target: &'t dyn Target,
    form: String,
    at: String,
    beside: bool,
    /// Where it is left out the offers are only noted.
    taken: Option<Offer>,
    /// What is changed about the offer that is taken, to see that this is found.
    change: Option<fn(&mut Offer)>,
    asked: Mutex<Vec<Offer>>,
}

impl Taking<'_> {
    /// The same where the offer is changed.
    pub(crate) fn changing(self, change: fn(&mut Offer)) -> Self {
        Taking { change: Some(change), ..self }
    }

    /// What the form offered at the node, each offer once.
    pub(crate) fn offered(&self) -> Vec<Offer> {
        self.asked.lock().unwrap().clone()
    }

    fn is_at(&self, query: &NodeQuery<'_>) -> bool {
        let y = query.graph.node(query.node).result(0);
        y.is_some_and(|y| query.graph.value(y).name == self.at)
    }

    /// Of what is offered at the node, what may be taken.
    fn own(&self, offers: Vec<Offer>) -> Vec<Offer> {
        let mut asked = self.asked.lock().unwrap();
        let mut own: Vec<Offer> = offers.into_iter().filter(|offer| offer.form == self.form).collect();
        for offer in &own {
            if !asked.iter().any(|known| is_same(known, offer)) {
                asked.push(offer.clone());
            }
        }
        if let Some(taken) = &self.taken {
            own.retain(|offer| is_same(offer, taken));
            for offer in &mut own {
                offer.cost = Cost::ZERO;
                self.change.into_iter().for_each(|change| change(offer));
            }
        }
        own
    }

    fn told(&self, query: &NodeQuery<'_>, ask: impl Fn() -> Vec<Offer>) -> Vec<Offer> {
        match (self.is_at(query), self.beside) {
            (true, _) => {
                let offers = ask();
                assert_eq!(
                    format!("{offers:?}"),
                    format!("{:?}", ask()),
                    "asked twice, {} offers otherwise",
                    self.form
                );
                self.own(offers)
            }
            (false, true) => ask(),
            (false, false) => Vec::new(),
        }
    }
}

/// Whether two offers are of one way: they may be priced otherwise, in a trial for example.
pub(crate) fn is_same(a: &Offer, b: &Offer) -> bool {
    let way = |offer: &Offer| format!("{:?} {:?}", offer.layouts, offer.becomes);
    a.form == b.form && way(a) == way(b)
}

/// The op of a node, if it is one of ONNX's or of a dialect.
pub(crate) fn op_name(node: &Node) -> Option<&OpName> {
    if let Op::Onnx(name) = &node.op { Some(name) } else { None }
}

/// The layouts of an offer, `_` for row-major ones.
pub(crate) fn told(offer: &Offer) -> String {
    let list = |layouts: &[Option<Layout>]| {
        let one = |layout: &Option<Layout>| layout.as_ref().map_or("_".to_owned(), ToString::to_string);
        layouts.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    format!("({}) -> ({})", list(&offer.layouts.ins), list(&offer.layouts.outs))
}

impl Target for Taking<'_> {
    fn name(&self) -> &str {
        self.target.name()
    }

    fn about(&self) -> &str {
        self.target.about()
    }

    fn layouts(&self) -> &str {
        self.target.layouts()
    }

    fn dialect(&self) -> &str {
        self.target.dialect()
    }

    fn cost_source(&self) -> &str {
        self.target.cost_source()
    }

    /// One round, and no region is given back: what is taken need not gain.
    fn capabilities(&self) -> Capabilities {
        Capabilities { decides_again: false, checks_sizes: false, may_move_more: true, ..self.target.capabilities() }
    }

    fn forms(&self) -> &[Box<dyn TargetForm>] {
        self.target.forms()
    }

    fn passes(&self) -> &[Pass] {
        self.target.passes()
    }

    fn metadata(&self) -> Vec<(String, String)> {
        self.target.metadata()
    }

    fn only_on(&self, op: &OpName) -> Option<&str> {
        self.target.only_on(op)
    }

    fn op_cost(&self, query: &OpQuery<'_>) -> Option<Cost> {
        self.target.op_cost(query)
    }

    fn plain_cost(&self, query: &NodeQuery<'_>) -> Cost {
        if self.taken.is_some() && self.is_at(query) { DEAR } else { self.target.plain_cost(query) }
    }

    fn offers(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        self.told(query, || self.target.offers(query))
    }

    fn offers_among(&self, query: &NodeQuery<'_>, candidates: Candidates<'_, '_>) -> Vec<Offer> {
        self.told(query, || self.target.offers_among(query, candidates))
    }

    fn can_move(&self, graph: &Graph, v: ValueId, from: &Layout, to: &Layout) -> bool {
        self.target.can_move(graph, v, from, to)
    }

    fn lift(&self, graph: &mut Graph) -> Result<Option<Lifted>, PassError> {
        self.target.lift(graph)
    }

    fn move_cost(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        self.target.move_cost(query)
    }

    fn split_move(&self, query: &MoveQuery<'_>) -> Vec<[Layout; 2]> {
        self.target.split_move(query)
    }

    fn view_cost(&self) -> Cost {
        self.target.view_cost()
    }

    fn pass_cost(&self, bytes: u64) -> Cost {
        self.target.pass_cost(bytes)
    }

    fn copy_cost(&self, bytes: u64, run: u64) -> Cost {
        self.target.copy_cost(bytes, run)
    }
}
