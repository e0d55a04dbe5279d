//! Kinds of methods with the same expected counters: an enum with the words of each and its
//! promise.

/// Defines an enum of kinds, with `ALL` of them in the order written, the words of each for
/// documentation, and its promise.
macro_rules! kinds {
    ($(#[$doc:meta])* $kinds:ident: $promise:ty { $($(#[$note:meta])* $kind:ident $words:literal => $value:expr,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $kinds {
            $(#[doc = $words] $(#[$note])* $kind,)+
        }

        impl $kinds {
            /// All kinds, in the order of the documentation.
            pub const ALL: &[$kinds] = &[$($kinds::$kind),+];

            /// The methods of this kind, as written in their texts.
            pub const fn words(self) -> &'static str {
                match self {
                    $($kinds::$kind => $words,)+
                }
            }

            /// Promise of methods of this kind.
            pub const fn promise(self) -> $promise {
                match self {
                    $($kinds::$kind => $value,)+
                }
            }
        }
    };
}

pub(super) use kinds;
