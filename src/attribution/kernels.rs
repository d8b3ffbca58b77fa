//! Which family a kernel belongs to: ordered prefix rules, kept as data in `kernel_rules.toml`.
//!
//! A function name such as `kernel_mul_mv_id_q4_0_f32` goes in, `moe_q4_0_mv` comes out. The user's rules
//! stand before the built-in ones, so they can split a family or rename it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::model::Kernel;

/// The built-in rules.
const BUILT_IN: &str = include_str!("kernel_rules.toml");

/// Rules apply to what follows this; a name without it is its own family.
const PREFIX: &str = "kernel_";

/// Pipeline names by family, both sorted, each name once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelFamilies(pub BTreeMap<String, BTreeSet<String>>);

impl KernelFamilies {
    /// Sorts kernels into families: the function name decides, the pipeline's label is what is listed.
    pub fn new(kernels: &[Kernel], rules: &KernelRules) -> Self {
        let mut families: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for kernel in kernels {
            let name = if kernel.pipeline.is_empty() {
                &kernel.function
            } else {
                &kernel.pipeline
            };
            families
                .entry(rules.family(&kernel.function))
                .or_default()
                .insert(name.clone());
        }
        KernelFamilies(families)
    }
}

/// One rule: names that go on with `prefix` after `kernel_` are of `family`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelRule {
    /// What follows `kernel_`.
    pub prefix: String,
    /// The family's name in reports.
    pub family: String,
}

/// Ordered prefix rules; the first that matches decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRules {
    rules: Vec<KernelRule>,
}

/// A rule file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    rule: Vec<KernelRule>,
}

impl Default for KernelRules {
    /// The built-in rules (a test makes sure that the file parses and is complete).
    fn default() -> Self {
        let file: RuleFile = toml::from_str(BUILT_IN).unwrap_or_default();
        KernelRules { rules: file.rule }
    }
}

impl KernelRules {
    /// The rules of a TOML text (`[[rule]]` with `prefix` and `family`), tried before the built-in ones.
    pub fn with_user(toml_text: &str) -> Result<Self> {
        let file: RuleFile = toml::from_str(toml_text).map_err(|error| {
            Error::usage(format!("kernel rules: {}", one_line(&error.to_string()))).with_help(EXAMPLE)
        })?;
        KernelRules::with_rules(file.rule)
    }

    /// Rules that were read elsewhere, tried before the built-in ones.
    pub fn with_rules(user: Vec<KernelRule>) -> Result<Self> {
        for rule in &user {
            if rule.prefix.is_empty() || rule.family.is_empty() {
                let message = format!(
                    "kernel rule with prefix `{}` and family `{}`: neither may be empty",
                    rule.prefix, rule.family
                );
                return Err(Error::usage(message).with_help(EXAMPLE));
            }
            if rule.prefix.starts_with(PREFIX) {
                let message = format!("kernel rule with prefix `{}` can match no kernel", rule.prefix);
                return Err(Error::usage(message)
                    .with_help("a prefix is compared with what follows `kernel_`: leave `kernel_` out"));
            }
        }
        let mut rules = user;
        rules.extend(KernelRules::default().rules);
        Ok(KernelRules { rules })
    }

    /// The family of a function or pipeline name.
    pub fn family(&self, name: &str) -> String {
        let name = name.split('|').next().unwrap_or(name);
        let name = name.split(" (").next().unwrap_or(name).trim();
        let Some(rest) = name.strip_prefix(PREFIX) else {
            return if name.is_empty() {
                "(unknown)".to_owned()
            } else {
                name.to_owned()
            };
        };
        match self.rules.iter().find(|rule| rest.starts_with(&rule.prefix)) {
            Some(rule) => rule.family.clone(),
            None => format!("other_{}", rest.split('_').next().unwrap_or(rest)),
        }
    }
}

/// The remedy for a rule that cannot be used.
const EXAMPLE: &str = "a rule is written `[[rule]]`, then `prefix = \"mul_mv_id\"` and `family = \"moe_mv\"`";

/// A TOML error is several lines with a drawing of the place; an error message is one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_rules_parse_and_keep_their_order() {
        let rules = KernelRules::default();
        assert_eq!(rules.rules.len(), 31);
        for (at, rule) in rules.rules.iter().enumerate() {
            for later in &rules.rules[at + 1..] {
                assert!(
                    !later.prefix.starts_with(&rule.prefix),
                    "{} hides {}",
                    rule.prefix,
                    later.prefix
                );
            }
        }
    }

    #[test]
    fn families_as_the_script_gave_them() {
        let rules = KernelRules::default();
        for (name, family) in [
            ("kernel_mul_mm_id_map0_ne20_8", "moe_map0"),
            ("kernel_mul_mm_id_q4_0_tensor_f32", "moe_q4_0_mm"),
            ("kernel_mul_mm_id_q4_0_f32", "moe_mm"),
            ("kernel_mul_mv_id_q4_0_f32", "moe_q4_0_mv"),
            ("kernel_mul_mv_q6_K_f32", "dense_q6_K_mv"),
            ("kernel_mul_mv_f16_f32_l4", "dense_mv"),
            ("kernel_flash_attn_ext_vec_f16|nsg=4", "flash_attn"),
            ("kernel_rope_neox_f32 (45)", "rope"),
            ("kernel_get_rows_q4_0", "other_get"),
            ("kernel_", "other_"),
            ("copyInteractionCounts (45)", "copyInteractionCounts"),
            ("my kernel", "my kernel"),
            ("", "(unknown)"),
            ("|x", "(unknown)"),
        ] {
            assert_eq!(rules.family(name), family, "{name}");
        }
    }

    #[test]
    fn user_rules_come_first() {
        let rules = KernelRules::with_user("[[rule]]\nprefix = \"rope_neox\"\nfamily = \"neox\"\n").unwrap();
        assert_eq!(rules.family("kernel_rope_neox_f32"), "neox");
        assert_eq!(rules.family("kernel_rope_norm_f32"), "rope");
    }

    #[test]
    fn bad_user_rules_are_refused() {
        for (text, part) in [
            ("[[rule]]\nprefix = \"a\"\nfamily = \"b\"\nfamilly = \"c\"", "familly"),
            ("[[rules]]\nprefix = \"a\"\nfamily = \"b\"", "rules"),
            ("[[rule]]\nprefix = \"a\"", "family"),
            ("[[rule]]\nprefix = \"\"\nfamily = \"b\"", "empty"),
            ("[[rule]]\nprefix = \"a\"\nfamily = \"\"", "empty"),
            ("[[rule]]\nprefix = \"kernel_a\"\nfamily = \"b\"", "no kernel"),
            ("not toml", "kernel rules"),
        ] {
            let error = KernelRules::with_user(text).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
            assert!(!error.to_string().contains('\n'));
            assert!(error.help().is_some());
        }
    }

    #[test]
    fn the_function_decides_and_the_pipeline_is_listed() {
        let kernel = |function: &str, pipeline: &str| Kernel {
            function: function.into(),
            pipeline: pipeline.into(),
        };
        let kernels = [
            kernel("kernel_rope_f32", "rope_q"),
            kernel("kernel_rope_f32", "rope_k"),
            kernel("kernel_rope_f16", "rope_q"),
            kernel("add", ""),
        ];
        let families = KernelFamilies::new(&kernels, &KernelRules::default());
        assert_eq!(families.0["rope"].iter().collect::<Vec<_>>(), ["rope_k", "rope_q"]);
        assert_eq!(families.0["add"].iter().collect::<Vec<_>>(), ["add"]);
    }
}
