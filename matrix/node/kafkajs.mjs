// kafkajs, with the codecs its README names for it.
import zlib from 'node:zlib'
import { promisify } from 'node:util'
import kafkajs from 'kafkajs'
import snappy from 'kafkajs-snappy'
import lz4 from 'lz4-napi'
import { emit, inputEnd, keyedBatches, offsetList, packageVersion, parseArguments } from './common.mjs'

const { CompressionCodecs, CompressionTypes, Kafka, logLevel, PartitionAssigners } = kafkajs
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD
}
CompressionCodecs[CompressionTypes.Snappy] = snappy
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: encoder => lz4.compressFrame(encoder.buffer),
  decompress: lz4.decompressFrame
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: encoder => promisify(zlib.zstdCompress)(encoder.buffer),
  decompress: promisify(zlib.zstdDecompress)
})

const args = parseArguments()
const kafka = new Kafka({ brokers: [args.bootstrap ?? ''], logLevel: logLevel.WARN })

async function createTopic () {
  const admin = kafka.admin()
  await admin.connect()
  const topics = [{ topic: args.topic, numPartitions: Number(args.partitions) }]
  await admin.createTopics({ topics })
  await admin.disconnect()
}

async function produce () {
  const producer = kafka.producer({
    idempotent: args.idempotent === 'true',
    maxInFlightRequests: 1,
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner
  })
  await producer.connect()
  for (const messages of keyedBatches(args)) {
    await producer.send({
      topic: args.topic, messages, acks: -1, compression: CODECS[args.codec]
    })
  }
  await producer.disconnect()
  emit(`produced ${args.records}`)
}

async function consume () {
  const consumer = kafka.consumer({
    groupId: args.group,
    sessionTimeout: Number(args['session-timeout-ms']),
    heartbeatInterval: 500,
    maxWaitTimeInMs: 100,
    partitionAssigners: [PartitionAssigners.roundRobin]
  })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    emit(`owns ${(payload.memberAssignment[args.topic] ?? []).join(',')}`)
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [args.topic], fromBeginning: true })
  await consumer.run({ autoCommit: false, eachBatch: payload => handle(consumer, payload) })
  await inputEnd()
  await consumer.disconnect()
  emit('closed')
}

async function handle (consumer, { batch, heartbeat, isRunning, isStale }) {
  if (!isRunning() || isStale()) return
  const { messages, partition, topic } = batch
  emit(...messages.map(m => `record ${partition} ${m.offset} ${m.key} ${m.value}`))
  const offset = String(BigInt(batch.lastOffset()) + 1n)
  await consumer.commitOffsets([{ topic, partition, offset }])
  emit(`committed ${offsetList([[partition, offset]])}`)
  await heartbeat()
}

const commands = {
  version: () => emit(packageVersion('kafkajs')),
  'create-topic': createTopic,
  produce,
  consume
}
await commands[args.command]()
