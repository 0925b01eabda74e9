//! One setting: its type, what it accepts, who may change it when. Texts of refusals are those of
//! Kafka's `ConfigDef`, because tools print them.

/// A setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Kafka's name of it.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its value where nobody says; `None` where it then has none.
    pub default: Option<&'static str>,
    /// What it accepts beyond its type.
    pub check: Check,
    /// When it may change.
    pub scope: Scope,
    /// One or two sentences for whoever asks DescribeConfigs for documentation.
    pub doc: &'static str,
    /// Broker settings that give a topic setting its default, the strongest first, each with the
    /// factor that turns its unit into this one's.
    pub synonyms: &'static [(&'static str, i64)],
}

/// Kafka's configuration types; its numbers of them are the wire's business.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// Text.
    String,
    /// 32 bits.
    Int,
    /// 64 bits.
    Long,
    /// A fraction.
    Double,
    /// Texts, separated by commas.
    List,
}

/// What a value must be beyond its type.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// Anything of the type.
    Any,
    /// A number not below this.
    AtLeast(i64),
    /// A number from the first to the second.
    Between(i64, i64),
    /// A fraction from 0 to 1.
    Ratio,
    /// One of these texts, or a list of them.
    OneOf(&'static [&'static str]),
    /// This value alone: Kafka knows others, which could not take effect here. The second text
    /// says why.
    Only(&'static str, &'static str),
}

/// When a broker setting may change. Topic and group settings change at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// At start only.
    ReadOnly,
    /// At any time, for each broker or for all.
    PerBroker,
    /// At any time, the same for all brokers.
    ClusterWide,
}

/// A value of a setting's type.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Of [`Kind::Boolean`].
    Boolean(bool),
    /// Of [`Kind::String`].
    Text(String),
    /// Of [`Kind::Int`] and [`Kind::Long`].
    Number(i64),
    /// Of [`Kind::Double`].
    Fraction(f64),
    /// Of [`Kind::List`].
    List(Vec<String>),
}

impl Setting {
    /// Understands a value.
    ///
    /// # Errors
    /// Kafka's text of why it is refused; the caller answers INVALID_CONFIG with it.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        // Kafka trims every value but a class name or password.
        let text = text.trim();
        let value = self.typed(text).map_err(|why| self.invalid(text, &why))?;
        self.accepts(&value).map_err(|why| match &value {
            Value::Fraction(fraction) => self.invalid(&format!("{fraction:?}"), &why),
            Value::List(_) => self.invalid(&self.offender(text), &why),
            _ => self.invalid(text, &why),
        })?;
        Ok(value)
    }

    fn typed(&self, text: &str) -> Result<Value, String> {
        let not_a = |kind: &str| format!("Not a number of type {kind}");
        match self.kind {
            Kind::Boolean if text.eq_ignore_ascii_case("true") => Ok(Value::Boolean(true)),
            Kind::Boolean if text.eq_ignore_ascii_case("false") => Ok(Value::Boolean(false)),
            Kind::Boolean => Err("Expected value to be either true or false".into()),
            Kind::String => Ok(Value::Text(text.into())),
            Kind::Int => {
                let number = text.parse::<i32>().map_err(|_| not_a("INT"))?;
                Ok(Value::Number(number.into()))
            }
            Kind::Long => text.parse().map(Value::Number).map_err(|_| not_a("LONG")),
            Kind::Double => match text.parse::<f64>() {
                Ok(fraction) if fraction.is_finite() => Ok(Value::Fraction(fraction)),
                _ => Err(not_a("DOUBLE")),
            },
            Kind::List => Ok(Value::List(split(text).map(str::to_owned).collect())),
        }
    }

    fn accepts(&self, value: &Value) -> Result<(), String> {
        let at_least = |floor| Err(format!("Value must be at least {floor}"));
        let at_most = |ceiling| Err(format!("Value must be no more than {ceiling}"));
        match (self.check, value) {
            (Check::AtLeast(floor), Value::Number(number)) if *number < floor => at_least(floor),
            (Check::Between(floor, _), Value::Number(number)) if *number < floor => at_least(floor),
            (Check::Between(_, top), Value::Number(number)) if *number > top => at_most(top),
            (Check::Ratio, Value::Fraction(fraction)) if *fraction < 0.0 => at_least(0),
            (Check::Ratio, Value::Fraction(fraction)) if *fraction > 1.0 => at_most(1),
            (Check::OneOf(known), Value::Text(text)) => one_of(known, text),
            (Check::OneOf(known), Value::List(items)) => {
                items.iter().try_for_each(|item| one_of(known, item))
            }
            (Check::Only(only, why), value) if self.typed(only).as_ref() != Ok(value) => {
                Err(format!("This broker supports {only} alone: {why}"))
            }
            _ => Ok(()),
        }
    }

    fn invalid(&self, value: &str, why: &str) -> String {
        format!("Invalid value {value} for configuration {}: {why}", self.name)
    }

    /// The item of a list that a [`Check::OneOf`] refuses; Kafka names it, not the list.
    fn offender(&self, text: &str) -> String {
        let Check::OneOf(known) = self.check else { return text.into() };
        split(text).find(|item| !known.contains(item)).unwrap_or(text).into()
    }
}

/// The items of a list's text, as Kafka splits it.
pub fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn one_of(known: &[&str], text: &str) -> Result<(), String> {
    if known.contains(&text) {
        return Ok(());
    }
    Err(format!("String must be one of: {}", known.join(", ")))
}
