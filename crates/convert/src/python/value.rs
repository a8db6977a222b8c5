//! The values of an evaluated Python script.

use burnish_hydra::{Node, Origin, Value};
use indexmap::IndexMap;
use rustpython_ruff_python_ast::{Stmt, StmtClassDef, StmtFunctionDef};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Limits of the parts of a value, and of their nesting.
pub(crate) const PARTS: usize = 20_000;
pub(crate) const NESTED: usize = 64;

/// A value that only a run of the script could tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownValue {
    pub line: usize,
    /// Expression, as written in the script.
    pub text: String,
}

/// A call of a function, class or method outside of the script, which is not executed.
#[derive(Debug)]
pub(crate) struct LibraryCall<'a> {
    /// Full name of a function or class such as `trl.GRPOConfig`; only the name for a method.
    pub path: String,
    /// Object of a method.
    pub receiver: Option<PyValue<'a>>,
    pub arguments: Vec<PyValue<'a>>,
    pub keywords: Vec<(String, PyValue<'a>)>,
    /// Arguments whose names are unknown, such as `**settings`.
    pub unread: Vec<UnknownValue>,
    pub line: usize,
    /// Class of the script that inherits from the called class.
    pub class: Option<Rc<PyClass<'a>>>,
    /// Attributes that the script assigns later, with the line.
    pub assigned: RefCell<IndexMap<String, (usize, PyValue<'a>)>>,
}

impl<'a> LibraryCall<'a> {
    /// Returns the last part of the name.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
    }

    /// Returns a named argument, otherwise the argument at a position.
    pub(crate) fn argument(&self, name: &str, position: usize) -> Option<&PyValue<'a>> {
        let named = self.keywords.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        named.or_else(|| self.arguments.get(position))
    }
}

/// A function of the script.
#[derive(Debug)]
pub(crate) struct PyFunction<'a> {
    pub definition: &'a StmtFunctionDef,
    pub line: usize,
    /// Variables of the enclosing functions; `None` at the top level of the file.
    pub around: Option<IndexMap<String, PyValue<'a>>>,
}

/// A field of a class.
#[derive(Debug, Clone)]
pub(crate) struct PyField<'a> {
    pub default: Option<PyValue<'a>>,
    /// Type, as written.
    pub annotation: String,
    pub line: usize,
}

/// A class of the script.
#[derive(Debug)]
pub(crate) struct PyClass<'a> {
    pub definition: &'a StmtClassDef,
    pub line: usize,
    pub bases: Vec<PyValue<'a>>,
    /// Fields and class variables, without those that the bases define.
    pub fields: IndexMap<String, PyField<'a>>,
    /// True if the class has methods.
    pub has_methods: bool,
}

impl<'a> PyClass<'a> {
    /// Returns the fields of the class and its bases in the script, the fields of the bases first.
    pub(crate) fn all_fields(&self) -> IndexMap<String, PyField<'a>> {
        let mut fields = IndexMap::new();
        for base in &self.bases {
            if let PyValue::Class(base) = base {
                fields.extend(base.all_fields());
            }
        }
        fields.extend(self.fields.iter().map(|(name, field)| (name.clone(), field.clone())));
        fields
    }

    /// Returns a method of the class or of a base in the script.
    pub(crate) fn method(&self, name: &str) -> Option<&'a StmtFunctionDef> {
        let method = self.definition.body.iter().find_map(|statement| match statement {
            Stmt::FunctionDef(one) if one.name.as_str() == name => Some(one),
            _ => None,
        });
        method
            .or_else(|| self.bases.iter().find_map(|base| if let PyValue::Class(base) = base { base.method(name) } else { None }))
    }

    /// Returns the class outside of the script from which this class inherits.
    pub(crate) fn library_base(&self) -> Option<&str> {
        self.bases.iter().find_map(|base| match base {
            PyValue::Path(path) => Some(&**path),
            PyValue::Class(class) => class.library_base(),
            _ => None,
        })
    }

    /// Returns true if the class or one of its bases has methods.
    pub(crate) fn changes_methods(&self) -> bool {
        self.has_methods || self.bases.iter().any(|base| matches!(base, PyValue::Class(class) if class.changes_methods()))
    }
}

/// An instance of a class of the script, or a namespace of parsed arguments.
#[derive(Debug)]
pub(crate) struct PyObject<'a> {
    pub class: Option<Rc<PyClass<'a>>>,
    pub fields: RefCell<IndexMap<String, PyValue<'a>>>,
}

/// A value of the script.
#[derive(Debug, Clone)]
pub(crate) enum PyValue<'a> {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Rc<str>),
    List(Rc<RefCell<Vec<PyValue<'a>>>>),
    Tuple(Rc<Vec<PyValue<'a>>>),
    Dict(Rc<RefCell<Vec<(PyValue<'a>, PyValue<'a>)>>>),
    /// Full name of an imported module, of a member of one, or of a builtin.
    Path(Rc<str>),
    Call(Rc<LibraryCall<'a>>),
    /// An attribute of a call's result.
    Attribute(Rc<(PyValue<'a>, String)>),
    /// An item of a call's result.
    Item(Rc<(PyValue<'a>, PyValue<'a>)>),
    Function(Rc<PyFunction<'a>>),
    Class(Rc<PyClass<'a>>),
    Object(Rc<PyObject<'a>>),
    /// The value of an option in the words of the command, or its default.
    Option(Rc<str>),
    Unknown(Rc<UnknownValue>),
}

impl<'a> PyValue<'a> {
    pub(crate) fn text(text: impl AsRef<str>) -> Self {
        Self::Text(Rc::from(text.as_ref()))
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(RefCell::new(items)))
    }

    pub(crate) fn dict(entries: Vec<(Self, Self)>) -> Self {
        Self::Dict(Rc::new(RefCell::new(entries)))
    }

    /// Returns the memory of a text, list or dict in bytes, roughly and without the values inside.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::List(items) => 32 * items.borrow().len(),
            Self::Tuple(items) => 32 * items.len(),
            Self::Dict(entries) => 64 * entries.borrow().len(),
            _ => 0,
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn as_call(&self) -> Option<&Rc<LibraryCall<'a>>> {
        if let Self::Call(call) = self { Some(call) } else { None }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Bool(value) => Some(f64::from(u8::from(*value))),
            Self::Int(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the items of a list or tuple.
    pub(crate) fn items(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(items) => Some(items.borrow().clone()),
            Self::Tuple(items) => Some(items.to_vec()),
            _ => None,
        }
    }

    /// Returns the truth of a value; `None` if only a run could tell.
    pub(crate) fn truth(&self) -> Option<bool> {
        match self {
            Self::None => Some(false),
            Self::Bool(value) => Some(*value),
            Self::Int(value) => Some(*value != 0),
            Self::Float(value) => Some(*value != 0.0),
            Self::Text(text) => Some(!text.is_empty()),
            Self::List(items) => Some(!items.borrow().is_empty()),
            Self::Tuple(items) => Some(!items.is_empty()),
            Self::Dict(entries) => Some(!entries.borrow().is_empty()),
            Self::Path(_) | Self::Function(_) | Self::Class(_) => Some(true),
            Self::Object(_) => Some(true),
            Self::Call(_) | Self::Attribute(_) | Self::Item(_) | Self::Option(_) | Self::Unknown(_) => None,
        }
    }

    /// Returns true for a value with few parts that does not contain itself.
    fn is_small(&self) -> bool {
        fn fits(value: &PyValue, left: &mut usize, depth: usize) -> bool {
            if *left == 0 || depth == 0 {
                return false;
            }
            *left -= 1;
            match value {
                PyValue::List(items) => items.borrow().iter().all(|item| fits(item, left, depth - 1)),
                PyValue::Tuple(items) => items.iter().all(|item| fits(item, left, depth - 1)),
                PyValue::Dict(entries) => {
                    let entries = entries.borrow();
                    entries.iter().all(|(key, value)| fits(key, left, depth - 1) && fits(value, left, depth - 1))
                }
                _ => true,
            }
        }
        let mut left = PARTS;
        fits(self, &mut left, NESTED)
    }

    /// Compares two values; `None` if only a run could tell.
    pub(crate) fn equals(&self, other: &Self) -> Option<bool> {
        if self.is_small() && other.is_small() { self.compare(other) } else { None }
    }

    fn compare(&self, other: &Self) -> Option<bool> {
        match (self, other) {
            (Self::None, Self::None) => Some(true),
            (Self::Text(one), Self::Text(other)) => Some(one == other),
            (Self::Path(one), Self::Path(other)) => Some(one == other),
            (one, other) if one.number().is_some() && other.number().is_some() => Some(one.number() == other.number()),
            (one, other) if one.items().is_some() && other.items().is_some() => {
                let (one, other) = (one.items()?, other.items()?);
                let pairs = || one.iter().zip(&other).map(|(one, other)| one.compare(other));
                if one.len() != other.len() {
                    return Some(false);
                }
                if pairs().any(|same| same.is_none()) { None } else { Some(pairs().all(|same| same == Some(true))) }
            }
            (one, other) if one.is_literal() && other.is_literal() => Some(false),
            _ => None,
        }
    }

    /// Returns true if both are the same object, or equal literals.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dict(one), Self::Dict(other)) => Rc::ptr_eq(one, other),
            (Self::List(one), Self::List(other)) if Rc::ptr_eq(one, other) => true,
            (Self::Call(one), Self::Call(other)) => Rc::ptr_eq(one, other),
            (Self::Object(one), Self::Object(other)) => Rc::ptr_eq(one, other),
            (Self::Function(one), Self::Function(other)) => std::ptr::eq(one.definition, other.definition),
            (Self::Class(one), Self::Class(other)) => std::ptr::eq(one.definition, other.definition),
            (Self::Option(one), Self::Option(other)) => one == other,
            (Self::Unknown(one), Self::Unknown(other)) => one == other,
            (Self::Attribute(one), Self::Attribute(other)) => one.1 == other.1 && one.0.is_same(&other.0),
            (Self::Item(one), Self::Item(other)) => one.0.is_same(&other.0) && one.1.is_same(&other.1),
            _ => self.equals(other) == Some(true),
        }
    }

    fn is_literal(&self) -> bool {
        matches!(
            self,
            Self::None
                | Self::Bool(_)
                | Self::Int(_)
                | Self::Float(_)
                | Self::Text(_)
                | Self::List(_)
                | Self::Tuple(_)
                | Self::Dict(_)
        )
    }

    /// Returns the value of a setting.
    ///
    /// # Errors
    /// If the value, or a value in it, is not a literal; the error is that value.
    pub(crate) fn setting(&self) -> Result<Value, Self> {
        if self.is_small() { self.literal() } else { Err(self.clone()) }
    }

    fn literal(&self) -> Result<Value, Self> {
        let node = |value: Value| Node::new(value, Origin::Override(Arc::from("")));
        Ok(match self {
            Self::None => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Float(value) => Value::Float(*value),
            Self::Text(text) => Value::Text(text.to_string()),
            Self::List(_) | Self::Tuple(_) => {
                let items = self.items().unwrap_or_default();
                Value::List(items.iter().map(|item| item.literal().map(node)).collect::<Result<_, _>>()?)
            }
            Self::Dict(entries) => {
                let mut map = IndexMap::new();
                for (key, value) in entries.borrow().iter() {
                    let key = match key {
                        Self::Text(text) => text.to_string(),
                        Self::Int(number) => number.to_string(),
                        other => return Err(other.clone()),
                    };
                    map.insert(key, node(value.literal()?));
                }
                Value::Map(map.into_iter().collect())
            }
            // Members of an enumeration, such as `IntervalStrategy.STEPS`, and types such as `torch.bfloat16`.
            Self::Path(path) => {
                let name = path.rsplit('.').next().unwrap_or_default();
                let is_member = path.contains('.') && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
                if is_member || path.starts_with("torch.") { Value::Text(name.to_lowercase()) } else { return Err(self.clone()) }
            }
            other => return Err(other.clone()),
        })
    }
}
