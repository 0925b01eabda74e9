//! The snapshot as OpenMetrics text. Every name begins with `ottla_`.

use super::snapshot::Snapshot;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;

/// Writes it down.
pub(super) fn encode(snapshot: Snapshot) -> String {
    let mut registry = Registry::with_prefix("ottla");
    registry.register_collector(Box::new(snapshot));
    let mut out = String::new();
    // Writing to a string fails for nobody.
    let _ = text::encode(&mut out, &registry);
    out
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_requests(&mut encoder)?;
        for (name, help, value) in &self.counters {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            counter(&mut metric, *value)?;
        }
        for (name, help, value) in &self.gauges {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            metric.encode_gauge(value)?;
        }
        self.encode_logs(&mut encoder)?;
        self.encode_groups(&mut encoder)?;
        self.encode_lags(&mut encoder)
    }
}

impl Snapshot {
    fn encode_requests(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "From a request's arrival until its reply went to the socket";
        let name = "request_duration_seconds";
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for requests in &self.requests {
            let count = requests.buckets.iter().map(|(_, count)| count).sum();
            let labels = [("api", requests.api.as_str())];
            let mut metric = family.encode_family(&labels)?;
            metric.encode_histogram::<NoLabelSet>(requests.sum, count, &requests.buckets, None)?;
        }
        let help = "Errors in replies";
        let mut family =
            encoder.encode_descriptor("request_errors", help, None, MetricType::Counter)?;
        for (api, code, count) in &self.errors {
            let labels = [("api", api.as_str()), ("error", code)];
            counter(&mut family.encode_family(&labels)?, *count)?;
        }
        Ok(())
    }

    fn encode_logs(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Number = fn(&super::snapshot::LogNumbers) -> u64;
        let numbers: [(&str, &str, Number); 3] = [
            ("log_size_bytes", "Bytes of a partition's segments", |log| log.bytes),
            ("log_start_offset", "First offset of a partition", |log| log.start.0.unsigned_abs()),
            ("log_high_watermark", "Offset below which a partition is safe and readable", |log| {
                log.high_watermark.0.unsigned_abs()
            }),
        ];
        for (name, help, number) in numbers {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for log in &self.logs {
                let partition = log.at.partition.to_string();
                let labels = [("topic", &*log.at.topic), ("partition", &partition)];
                family.encode_family(&labels)?.encode_gauge(&number(log))?;
            }
        }
        Ok(())
    }

    fn encode_groups(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let states = [
            ("Empty", self.states.empty),
            ("PreparingRebalance", self.states.preparing_rebalance),
            ("CompletingRebalance", self.states.completing_rebalance),
            ("Assigning", self.states.assigning),
            ("Reconciling", self.states.reconciling),
            ("Stable", self.states.stable),
        ];
        let help = "Groups by state";
        let mut family = encoder.encode_descriptor("groups", help, None, MetricType::Gauge)?;
        for (state, count) in states {
            gauge(&mut family, &[("state", state)], count as u64)?;
        }
        let help = "Rebalances by what began them, since the shards were loaded";
        let mut family =
            encoder.encode_descriptor("rebalances", help, None, MetricType::Counter)?;
        for (cause, count) in &self.rebalances {
            let cause = format!("{cause:?}");
            counter(&mut family.encode_family(&[("cause", cause.as_str())])?, *count)?;
        }
        let help = "From what began a rebalance until it was over";
        let name = "rebalance_duration_seconds";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        let (buckets, sum) = &self.rebalance_durations;
        let count = buckets.iter().map(|(_, count)| count).sum();
        metric.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)?;
        let help = "How long the last load of a coordinator shard took";
        let name = "shard_load_seconds";
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (shard, took) in &self.loads {
            let shard = shard.to_string();
            let labels = [("shard", shard.as_str())];
            family.encode_family(&labels)?.encode_gauge(&took.as_secs_f64())?;
        }
        Ok(())
    }

    fn encode_lags(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Records a group has yet to commit in a partition";
        let mut family = encoder.encode_descriptor("group_lag", help, None, MetricType::Gauge)?;
        for lag in &self.lags {
            family.encode_family(&lag.labels())?.encode_gauge(&lag.lag)?;
        }
        let help = "The next offset a group will read in a partition";
        let name = "group_committed_offset";
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for lag in &self.lags {
            family.encode_family(&lag.labels())?.encode_gauge(&lag.committed.0)?;
        }
        let help = "Lags that are not listed because there are too many";
        let name = "group_lags_omitted";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        metric.encode_gauge(&self.lags_omitted)
    }
}

impl super::snapshot::Lag {
    fn labels(&self) -> [(&'static str, String); 3] {
        [
            ("group", self.group.to_string()),
            ("topic", self.topic.to_string()),
            ("partition", self.partition.to_string()),
        ]
    }
}

fn counter(metric: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    metric.encode_counter::<NoLabelSet, u64, u64>(&value, None)
}

fn gauge(family: &mut MetricEncoder<'_>, labels: &impl EncodeLabelSet, value: u64) -> fmt::Result {
    family.encode_family(labels)?.encode_gauge(&value)
}
