//! The engine's own passes, in their order.

use super::{Step, StepRun, run_assign, run_materialize};
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
use relayout_target::Fact::{Bound, Decided, Layouts, Packed, Types};
use relayout_target::{Declared, Fact, Slot};

/// Every pass.
pub(crate) static PASSES: &[Step<'static>] = &[
    Step {
        is: Declared {
            needs: &[],
            gives: &[Types],
            keeps_nodes: true,
            ..Declared::new(
                "fold_shapes",
                Slot::Simplify,
                "everything after it asks for ranks, and views ask for extents",
            )
        },
        run: StepRun::Engine(fold_shapes::fold_shapes),
    },
    Step {
        is: Declared {
            needs: &[Types],
            gives: &[Bound],
            keeps_nodes: true,
            ..Declared::new(
                "canonicalize",
                Slot::Simplify,
                "binds nodes to signatures, for which ranks and constant axes must be known",
            )
        },
        run: StepRun::EachGraph(&canonicalize),
    },
    Step {
        is: Declared {
            rules: &[&fold_constants::CONTENTS, &fold_constants::OPERANDS],
            ..Declared::new(
                "fold_constants",
                Slot::Simplify,
                "needs views and the contents of shape arithmetic; constants behind nodes are no weights to what follows",
            )
        },
        run: StepRun::EachGraph(&fold_constants::fold_constants),
    },
    Step {
        is: Declared {
            rules: &[&fold_copies::RULE],
            ..Declared::new("fold_copies", Slot::Prepare, "what comes after it need not look through copies")
        },
        run: StepRun::EachGraph(&fold_copies::fold_copies),
    },
    Step {
        is: Declared {
            rules: fold_scales::RULES,
            ..Declared::new(
                "fold_scales",
                Slot::Prepare,
                "needs weights as constants; the decision need not carry layouts through what goes",
            )
        },
        run: StepRun::EachGraph(&fold_scales::fold_scales),
    },
    Step {
        is: Declared {
            rules: &[&fold_pads::RULE],
            ..Declared::new("fold_pads", Slot::Prepare, "for the same reasons")
        },
        run: StepRun::EachGraph(&fold_pads::fold_pads),
    },
    Step {
        is: Declared::new(
            "choose_forms",
            Slot::Forms,
            "what scales could take in is gone; a trial decision prices the forms of pieces",
        ),
        run: StepRun::Model(choose_forms),
    },
    Step {
        is: Declared::new(
            "raise_pieces",
            Slot::Forms,
            "the target offers forms for one op, and a piece may be several; what scales could take in is gone",
        ),
        run: StepRun::Engine(raise_pieces),
    },
    Step {
        is: Declared {
            gives: &[Decided],
            keeps_nodes: true,
            ..Declared::new(
                "assign",
                Slot::Decide,
                "reads signatures only; decides everything that the rest carries out, for all graphs at once",
            )
        },
        run: StepRun::Engine(run_assign),
    },
    Step {
        is: Declared {
            needs: &[Decided],
            gives: &[Layouts],
            keeps_nodes: true,
            ..Declared::new("materialize", Slot::Write, "writes the decision as layouts and Relayouts")
        },
        run: StepRun::Engine(run_materialize),
    },
    Step {
        is: Declared {
            needs: &[Layouts],
            ..Declared::new(
                "restore_pieces",
                Slot::Write,
                "what no form was chosen for is written as it was, which may need views",
            )
        },
        run: StepRun::Engine(restore_pieces),
    },
    Step {
        is: Declared {
            needs: &[Layouts],
            keeps_nodes: true,
            ..Declared::new(
                "raise_operands",
                Slot::Write,
                "adds views that the dialect needs, some of them of constants",
            )
        },
        run: StepRun::EachGraph(&|graph, _| raise_operands(graph)),
    },
    Step {
        is: Declared {
            needs: &[Layouts],
            keeps_nodes: true,
            ..Declared::new("raise_to_digits", Slot::Write, "the same where values have a dim per digit")
        },
        run: StepRun::EachGraph(&|graph, cx| raise_to_digits(graph, cx.settings.opset)),
    },
    Step {
        is: Declared {
            needs: &[Layouts],
            gives: &[Fact::Written],
            ..Declared::new("write_forms", Slot::Write, "operands lie as the forms that were chosen read them")
        },
        run: StepRun::Engine(write_forms),
    },
    Step {
        is: Declared {
            needs: &[Fact::Written],
            rules: &[&reorder_weights::RULE],
            ..Declared::new(
                "reorder_weights",
                Slot::Finish,
                "takes moves that the decision left, before those of constants are folded",
            )
        },
        run: StepRun::EachGraph(&reorder_weights::reorder_weights),
    },
    Step {
        is: Declared {
            needs: &[Fact::Written],
            rules: &[&join_moves::RULE],
            ..Declared::new(
                "join_moves",
                Slot::Finish,
                "joins moves that the decision left; before views of constants are folded",
            )
        },
        run: StepRun::EachGraph(&join_moves::join_moves),
    },
    Step {
        is: Declared {
            needs: &[Fact::Written],
            ..Declared::new(
                "hoist",
                Slot::Finish,
                "takes moves and raised operands of captured values out of loops, those of constants included",
            )
        },
        run: StepRun::Model(hoist),
    },
    Step {
        is: Declared {
            needs: &[Fact::Written],
            gives: &[Packed],
            ..Declared::new("fold_weights", Slot::Finish, "absorbs moves and views of constants, whoever added them")
        },
        run: StepRun::EachGraph(&fold_weights),
    },
    Step {
        is: Declared {
            needs: &[Packed],
            ..Declared::new(
                "split_moves",
                Slot::Finish,
                "looks at the moves that are left; those of constants are gone",
            )
        },
        run: StepRun::EachGraph(&split_moves),
    },
    Step {
        is: Declared {
            needs: &[Packed],
            ..Declared::new("cleanup", Slot::Clean, "removes what the others left unread")
        },
        run: StepRun::Engine(cleanup),
    },
    Step {
        is: Declared {
            needs: &[Packed],
            ..Declared::new(
                "trim_pools",
                Slot::Clean,
                "knows which calls are left; only they ask for extents that a loader may infer otherwise",
            )
        },
        run: StepRun::Model(trim_pools),
    },
];
