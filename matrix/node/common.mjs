// What the Node clients share of the command language in matrix/README.md.
import { readFileSync, writeSync } from 'node:fs'
import { parseArgs } from 'node:util'

export function parseArguments () {
  const text = { type: 'string' }
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      bootstrap: text,
      topic: text,
      partitions: text,
      first: text,
      records: text,
      keys: text,
      codec: text,
      idempotent: text,
      group: text,
      'instance-id': text,
      assignor: text,
      'session-timeout-ms': text
    }
  })
  return { command: positionals[0], ...values }
}

/** The messages to send, in batches: a value is the key and its running number. */
export function * keyedBatches ({ first, records, keys }, size = 1000) {
  const end = Number(first) + Number(records)
  for (let start = Number(first); start < end; start += size) {
    const messages = []
    for (let number = start; number < Math.min(end, start + size); number++) {
      const key = `k${number % keys}`
      messages.push({ key, value: `${key}:${Math.floor(number / keys)}` })
    }
    yield messages
  }
}

/** Written at once, so that a kill cannot take back what was already said. */
export function emit (...lines) {
  let rest = Buffer.from(lines.map(line => line + '\n').join(''))
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest))
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}

/** Resolves once the orchestrator closes our input: the wish for a clean leave. */
export function inputEnd () {
  return new Promise(resolve => {
    process.stdin.on('end', resolve).resume()
  })
}

/** A map partition -> next offset in the language's form. */
export function offsetList (offsets) {
  return [...offsets].sort(([a], [b]) => a - b).map(([p, o]) => `${p}:${o}`).join(',')
}

/** Read from the installed file, since not every package exports its own. */
export function packageVersion (name) {
  const file = new URL(`./node_modules/${name}/package.json`, import.meta.url)
  return `${name} ${JSON.parse(readFileSync(file, 'utf8')).version}`
}
