// The AI SDK's own server side on Node with a tool that needs approval, and a model of PACE deltas a second.
// It keeps nothing: each request brings the whole conversation.
import { createServer } from 'node:http'
import { createRequire } from 'node:module'

const [, , home, DELTA, pace, beforeCall] = process.argv
const require = createRequire(home)
const { convertToModelMessages, isStepCount, jsonSchema, streamText, tool } = await import(require.resolve('ai'))

const PACE = Number(pace)
const BEFORE_CALL = Number(beforeCall)

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

const tools = {
  transfer: tool({
    description: 'Transfer an amount of money.',
    inputSchema: jsonSchema({ type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] }),
    needsApproval: true,
    execute: ({ amount }) => ({ transferred: amount }),
  }),
}

// As `bench.script.paced`.
function paced(prompt) {
  const texts = prompt.filter((message) => message.role === 'user').flatMap((message) => message.content)
  const [word, count] = texts.at(-1).text.split(' ')
  if (word !== 'pay') return [Number(count), false]
  return prompt.at(-1).role === 'tool' ? [Number(count) - BEFORE_CALL, false] : [BEFORE_CALL, true]
}

function* parts(count, isCalling) {
  yield { type: 'stream-start', warnings: [] }
  yield { type: 'text-start', id: 'text-1' }
  for (let number = 0; number < count; number++) yield { type: 'text-delta', id: 'text-1', delta: DELTA }
  yield { type: 'text-end', id: 'text-1' }
  if (isCalling) {
    const toolCallId = crypto.randomUUID()
    yield { type: 'tool-call', toolCallId, toolName: 'transfer', input: '{"amount":5}' }
  }
  const unified = isCalling ? 'tool-calls' : 'stop'
  yield { type: 'finish', finishReason: { unified, raw: unified }, usage }
}

function doStream({ prompt }) {
  const said = parts(...paced(prompt))
  const began = performance.now()
  let number = 0
  const stream = new ReadableStream({
    async pull(controller) {
      const next = said.next()
      if (next.done) return controller.close()
      if (next.value.type === 'text-delta') {
        const left = began + (number++ * 1000) / PACE - performance.now()
        await new Promise((resolve) => (left > 0 ? setTimeout(resolve, left) : setImmediate(resolve)))
      }
      controller.enqueue(next.value)
    },
  })
  return Promise.resolve({ stream })
}

const model = {
  specificationVersion: 'v4',
  provider: 'bench',
  modelId: 'paced',
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error('the bench streams')),
  doStream,
}

const server = createServer(async (request, response) => {
  const pieces = []
  for await (const piece of request) pieces.push(piece)
  const { messages } = JSON.parse(Buffer.concat(pieces).toString())
  streamText({
    model,
    tools,
    stopWhen: isStepCount(5),
    messages: await convertToModelMessages(messages, { tools }),
  }).pipeUIMessageStreamToResponse(response, { originalMessages: messages })
})
server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})
