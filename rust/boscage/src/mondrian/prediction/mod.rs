//! Where test points leave the trees (thesis section 5.5.3, Algorithms 5.8 and 6.5).

pub(crate) mod branch_rate;
pub(crate) mod path;
pub(crate) mod visitor;
pub(crate) mod walk;
