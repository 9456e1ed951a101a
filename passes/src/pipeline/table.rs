//! The engine's own passes, in their order.

use super::StepRun::{EachGraph, Engine, Model};
use super::{Step, run_assign, run_materialize, step};
use crate::forms::choose::choose_forms;
use crate::forms::raise::{raise_pieces, restore_pieces};
use crate::simplify::canonicalize::canonicalize;
use crate::simplify::{fold_constants, fold_copies, fold_pads, fold_scales, fold_shapes};
use crate::write::cleanup::cleanup;
use crate::write::fold_weights::fold_weights;
use crate::write::hoist::hoist;
use crate::write::raise_digits::raise_to_digits;
use crate::write::raise_operands::raise_operands;
use crate::write::split_moves::split_moves;
use crate::write::trim_pools::trim_pools;
use crate::write::write_forms::write_forms;
use crate::write::{join_moves, reorder_weights};
use relayout_target::Declared;
use relayout_target::Fact::{Bound, Decided, Layouts, Packed, Types, Written};
use relayout_target::Slot::{Clean, Decide, Finish, Forms, Prepare, Simplify, Write};

/// Every pass.
pub(crate) static PASSES: &[Step<'static>] = &[
    step(
        Declared::new("fold_shapes", Simplify, "everything after it asks for ranks, and views ask for extents")
            .needs(&[])
            .gives(&[Types])
            .keeps_nodes(),
        Engine(fold_shapes::fold_shapes),
    ),
    step(
        Declared::new(
            "canonicalize",
            Simplify,
            "binds nodes to signatures, for which ranks and constant axes must be known",
        )
        .needs(&[Types])
        .gives(&[Bound])
        .keeps_nodes(),
        EachGraph(&canonicalize),
    ),
    step(
        Declared::new(
            "fold_constants",
            Simplify,
            "needs views and the contents of shape arithmetic; constants behind nodes are no weights to what follows",
        )
        .rules(&[&fold_constants::CONTENTS, &fold_constants::OPERANDS]),
        EachGraph(&fold_constants::fold_constants),
    ),
    step(
        Declared::new("fold_copies", Prepare, "what comes after it need not look through copies")
            .rules(&[&fold_copies::RULE]),
        EachGraph(&fold_copies::fold_copies),
    ),
    step(
        Declared::new(
            "fold_scales",
            Prepare,
            "needs weights as constants; the decision need not carry layouts through what goes",
        )
        .rules(fold_scales::RULES),
        EachGraph(&fold_scales::fold_scales),
    ),
    step(
        Declared::new("fold_pads", Prepare, "for the same reasons").rules(&[&fold_pads::RULE]),
        EachGraph(&fold_pads::fold_pads),
    ),
    step(
        Declared::new(
            "choose_forms",
            Forms,
            "what scales could take in is gone; a trial decision prices the forms of pieces",
        ),
        Model(choose_forms),
    ),
    step(
        Declared::new(
            "raise_pieces",
            Forms,
            "the target offers forms for one op, and a piece may be several; what scales could take in is gone",
        ),
        Engine(raise_pieces),
    ),
    step(
        Declared::new(
            "assign",
            Decide,
            "reads signatures only; decides everything that the rest carries out, for all graphs at once",
        )
        .gives(&[Decided])
        .keeps_nodes(),
        Engine(run_assign),
    ),
    step(
        Declared::new("materialize", Write, "writes the decision as layouts and Relayouts")
            .needs(&[Decided])
            .gives(&[Layouts])
            .keeps_nodes(),
        Engine(run_materialize),
    ),
    step(
        Declared::new(
            "restore_pieces",
            Write,
            "what no form was chosen for is written as it was, which may need views",
        )
        .needs(&[Layouts]),
        Engine(restore_pieces),
    ),
    step(
        Declared::new("raise_operands", Write, "adds views that the dialect needs, some of them of constants")
            .needs(&[Layouts])
            .keeps_nodes(),
        EachGraph(&|graph, _| raise_operands(graph)),
    ),
    step(
        Declared::new("raise_to_digits", Write, "the same where values have a dim per digit")
            .needs(&[Layouts])
            .keeps_nodes(),
        EachGraph(&|graph, cx| raise_to_digits(graph, cx.settings.opset)),
    ),
    step(
        Declared::new("write_forms", Write, "operands lie as the forms that were chosen read them")
            .needs(&[Layouts])
            .gives(&[Written]),
        Engine(write_forms),
    ),
    step(
        Declared::new(
            "reorder_weights",
            Finish,
            "takes moves that the decision left, before those of constants are folded",
        )
        .needs(&[Written])
        .rules(&[&reorder_weights::RULE]),
        EachGraph(&reorder_weights::reorder_weights),
    ),
    step(
        Declared::new("join_moves", Finish, "joins moves that the decision left; before views of constants are folded")
            .needs(&[Written])
            .rules(&[&join_moves::RULE]),
        EachGraph(&join_moves::join_moves),
    ),
    step(
        Declared::new(
            "hoist",
            Finish,
            "takes moves and raised operands of captured values out of loops, those of constants included",
        )
        .needs(&[Written]),
        Model(hoist),
    ),
    step(
        Declared::new("fold_weights", Finish, "absorbs moves and views of constants, whoever added them")
            .needs(&[Written])
            .gives(&[Packed]),
        EachGraph(&fold_weights),
    ),
    step(
        Declared::new("split_moves", Finish, "looks at the moves that are left; those of constants are gone")
            .needs(&[Packed]),
        EachGraph(&split_moves),
    ),
    step(Declared::new("cleanup", Clean, "removes what the others left unread").needs(&[Packed]), Engine(cleanup)),
    step(
        Declared::new(
            "trim_pools",
            Clean,
            "knows which calls are left; only they ask for extents that a loader may infer otherwise",
        )
        .needs(&[Packed]),
        Model(trim_pools),
    ),
];
