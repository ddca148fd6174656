// A model for DeepSeek Harness that needs no key: it says what a script says, turn by turn, and writes down which
// results of tools it was shown.
import { appendFileSync, readFileSync } from 'node:fs'
import { CallId, LlmAdapter } from '@deepseek-ai/dsh-llm'

class Scripted extends LlmAdapter {
  turn = 0

  async resolveModel(provider, model) {
    return { provider, id: model, name: model }
  }

  async listModels(provider) {
    return [{ provider, id: 'scripted', name: 'scripted' }]
  }

  async *stream({ messages }) {
    const script = JSON.parse(readFileSync(process.env.MODEL_SCRIPT, 'utf8'))
    const results = messages.flatMap(({ content }) => content).filter(({ type }) => type === 'tool-result')
    appendFileSync(process.env.MODEL_SAW, JSON.stringify(results) + '\n')
    const { text, calls = [] } = script[this.turn++]
    const blocks = [
      { type: 'text', text },
      ...calls.map(({ id, name, args }) => ({ type: 'tool-call', id: CallId(id), name, arguments: JSON.stringify(args) })),
    ]
    for (const [index, block] of blocks.entries()) {
      if (block.type === 'text') {
        yield { type: 'block-start', index, blockType: 'text' }
        yield { type: 'text-delta', index, text }
      } else {
        const { id, name, arguments: argumentsDelta } = block
        yield { type: 'block-start', index, blockType: 'tool-call' }
        yield { type: 'tool-call-delta', index, id, name, argumentsDelta }
      }
      yield { type: 'block-end', index, block }
    }
    yield { type: 'usage', usage: { inputTokens: 1, outputTokens: 1 } }
    yield { type: 'finish', reason: { kind: calls.length ? 'tool-calls' : 'stop' } }
  }
}

export const name = 'scripted-model'
export const inject = ['llm']
export function apply(ctx) {
  ctx.llm.registerAdapter(['scripted'], new Scripted())
}
