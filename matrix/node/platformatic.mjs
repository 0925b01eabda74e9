// @platformatic/kafka.
import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'
import { emit, inputEnd, keyedBatches, offsetList, packageVersion, parseArguments } from './common.mjs'

const args = parseArguments()
const connection = { clientId: 'matrix', bootstrapBrokers: [args.bootstrap] }

async function createTopic () {
  const admin = new Admin(connection)
  await admin.createTopics({ topics: [args.topic], partitions: Number(args.partitions), replicas: 1 })
  await admin.close()
}

async function produce () {
  const producer = new Producer({
    ...connection,
    serializers: stringSerializers,
    idempotent: args.idempotent === 'true',
    compression: args.codec,
    acks: -1
  })
  for (const messages of keyedBatches(args)) {
    await producer.send({ messages: messages.map(m => ({ ...m, topic: args.topic })) })
  }
  await producer.close()
  emit(`produced ${args.records}`)
}

async function consume () {
  const consumer = new Consumer({
    ...connection,
    groupId: args.group,
    groupInstanceId: args['instance-id'],
    deserializers: stringDeserializers,
    sessionTimeout: Number(args['session-timeout-ms']),
    rebalanceTimeout: Number(args['session-timeout-ms']),
    heartbeatInterval: 500,
    maxWaitTime: 100
  })
  consumer.on('consumer:group:join', ({ assignments }) => {
    const partitions = assignments?.find(({ topic }) => topic === args.topic)?.partitions ?? []
    emit(`owns ${partitions.join(',')}`)
  })
  const stream = await consumer.consume({
    topics: [args.topic], mode: 'committed', fallbackMode: 'earliest', autocommit: false
  })
  const commits = new Committer(stream)
  await inputEnd()
  await commits.stop()
  await consumer.close(true)
  emit('closed')
}

/** Commits what the stream delivered, ten times a second. */
class Committer {
  #running = true
  #unprinted = []
  #uncommitted = new Map()
  #loop

  constructor (stream) {
    this.stream = stream
    stream.on('data', message => {
      const { partition, offset, key, value } = message
      this.#unprinted.push(`record ${partition} ${offset} ${key} ${value}`)
      this.#uncommitted.set(partition, message)
    })
    stream.on('error', error => {
      emit(`error ${error.message}`)
      process.exit(1)
    })
    this.#loop = this.#run()
  }

  async stop () {
    this.stream.pause()
    this.#running = false
    await this.#loop
  }

  async #run () {
    while (this.#running) {
      await this.#commit()
      await new Promise(resolve => setTimeout(resolve, 100))
    }
    await this.#commit()
  }

  async #commit () {
    if (this.#unprinted.length === 0) return
    emit(...this.#unprinted.splice(0))
    const last = [...this.#uncommitted.values()]
    this.#uncommitted.clear()
    await Promise.all(last.map(message => message.commit()))
    emit(`committed ${offsetList(last.map(m => [m.partition, m.offset + 1n]))}`)
  }
}

const commands = {
  version: () => emit(packageVersion('@platformatic/kafka')),
  'create-topic': createTopic,
  produce,
  consume
}
await commands[args.command]()
