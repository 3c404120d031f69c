// The AI SDK's own server side on Node: streamText, piped into the response.
import { createServer } from 'node:http'
import { createRequire } from 'node:module'

const [, , home, DELTA, slowDeltas] = process.argv
const require = createRequire(home)
const { convertToModelMessages, streamText } = await import(require.resolve('ai'))

const DELTAS = Number(process.env.BENCH_DELTAS)
const SLOW_DELTAS = Number(slowDeltas)

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

const soon = () => new Promise((resolve) => setImmediate(resolve))
const later = () => new Promise((resolve) => setTimeout(resolve, 1))

function* parts(count) {
  yield { type: 'stream-start', warnings: [] }
  yield { type: 'text-start', id: 'text-1' }
  for (let number = 0; number < count; number++) yield { type: 'text-delta', id: 'text-1', delta: DELTA }
  yield { type: 'text-end', id: 'text-1' }
  yield { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage }
}

function model(slow) {
  const pause = slow ? later : soon
  const said = parts(slow ? SLOW_DELTAS : DELTAS)
  const stream = new ReadableStream({
    async pull(controller) {
      const next = said.next()
      if (next.done) return controller.close()
      if (next.value.type === 'text-delta') await pause()
      controller.enqueue(next.value)
    },
  })
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'prepared',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('the bench streams')),
    doStream: () => Promise.resolve({ stream }),
  }
}

const server = createServer(async (request, response) => {
  const pieces = []
  for await (const piece of request) pieces.push(piece)
  const { messages } = JSON.parse(Buffer.concat(pieces).toString())
  const slow = messages.at(-1).parts[0].text === 'slow'
  streamText({ model: model(slow), messages: await convertToModelMessages(messages) }).pipeUIMessageStreamToResponse(response)
})
server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})
