//! Kinds of methods that promise the same: an enum with the words of each and its promise.

/// Defines an enum of kinds, `ALL` of them in the order written, the words of each for documentation, and what it promises.
macro_rules! kinds {
    ($(#[$doc:meta])* $kinds:ident: $promise:ty { $($(#[$note:meta])* $kind:ident $words:literal => $value:expr,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $kinds {
            $(#[doc = $words] $(#[$note])* $kind,)+
        }

        impl $kinds {
            /// All of them, as documentation lists them.
            pub const ALL: &[$kinds] = &[$($kinds::$kind),+];

            /// The methods of this kind, in the words of their texts.
            pub const fn words(self) -> &'static str {
                match self {
                    $($kinds::$kind => $words,)+
                }
            }

            /// What they promise.
            pub const fn promise(self) -> $promise {
                match self {
                    $($kinds::$kind => $value,)+
                }
            }
        }
    };
}

pub(super) use kinds;
