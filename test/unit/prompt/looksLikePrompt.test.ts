import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { largestLook, looksLikePrompt } from '../../../src/prompt/looksLikePrompt';

const json = JSON.stringify;
const message = { role: 'user', content: 'hi' };

describe('prompt/looksLikePrompt', () => {
  const yes: readonly (readonly [string, string, string])[] = [
    ['request', 'chat.json', json({ model: 'm', messages: [message] })],
    ['request', 'anthropic-cached.json', json({ model: 'claude', max_tokens: 1, system: [{ type: 'text', text: 'x' }], messages: [message] })],
    ['request', 'bedrock.json', json({ anthropic_version: 'bedrock-2023-05-31', messages: [message] })],
    ['request', 'gemini.json', json({ contents: [{ role: 'user', parts: [{ text: 'hi' }] }] })],
    ['request', 'responses.json', json({ model: 'm', instructions: 'x', input: 'hi' })],
    ['request', 'batch.jsonl', `${json({ custom_id: 'a', body: { model: 'm', messages: [message] } })}\n${json({ custom_id: 'b' })}\n`],
    ['request', 'list.json', json([{ model: 'm', messages: [message] }])],
    ['request', 'bom.json', `\ufeff${json({ model: 'm', messages: [message] })}`],
    ['template', 'triage.jinja2', 'You triage tickets.\n{{ ticket }}'],
    ['template', 'bot.hbs', '{{role "system"}}Be kind.'],
    ['template', 'answer.liquid', 'Answer only with JSON.\n{{ question }}'],
    ['template', 'models.yml', 'messages:\n  - role: system\n    content: x\n'],
    ['text', 'persona.txt', 'You are a pirate. Answer in verse.'],
    ['text', 'role.md', '---\ntitle: x\n---\n# Role\nYour task is to sum up.'],
    ['code', 'bot.py', 'def build(q):\n    return f"""You are a bot. {q}"""\n'],
    ['code', 'bot.ts', 'const SYSTEM_PROMPT: string = `Be kind.`;\n'],
  ];
  for (const [kind, name, text] of yes) it(`takes ${name} for a ${kind}`, () => assert.equal(looksLikePrompt(text, `/w/${name}`), kind));

  const no: readonly (readonly [string, string])[] = [
    ['a saved conversation', json({ id: 1, title: 'x', messages: [message] })].reverse() as [string, string],
    [json({ messages: { hello: 'Hallo' } }), 'a catalogue of messages'],
    [json({ messages: ['a'], model: 'm' }), 'messages without roles'],
    [json({ model: 'car', input: ['a', 'b'] }), 'an input that is none'],
    [json({ contents: [{ type: 'file' }], model: 'x' }), 'a table of contents'],
    ['{"model": "m", "messages": [{"role": "user"', 'half a request'],
  ];
  for (const [text, what] of no) it(`leaves ${what}`, () => assert.equal(looksLikePrompt(text, '/w/data.json'), null));

  const others: readonly (readonly [string, string])[] = [
    ['nginx.conf.j2', 'server {\n  listen {{ port }};\n  root {{ folder }};\n}'],
    ['page.hbs', '<html><body>You are a member, {{name}}.</body></html>'],
    ['letter.liquid', 'Dear {{ name }},\nthank you for your order. If you are a member, write to us.'],
    ['compose.yml', 'services:\n  web:\n    image: x\nmessages:\n  - hello\n'],
    ['guide.md', '# Guide\nThis page explains what to do when you are a newcomer.'],
    ['notes.txt', 'Buy milk.'],
    ['index.ts', 'export const a = "you are here";\n'],
    ['prompts.test.ts', 'const systemPrompt = "You are a bot";\n'],
    ['package.json', json({ model: 'm', messages: [message] })],
    ['binary.bin', 'You are a bot.'],
  ];
  for (const [name, text] of others) it(`leaves ${name}`, () => assert.equal(looksLikePrompt(text, `/w/${name}`), null));

  it('does not look into large files, and never throws on half a text', () => {
    assert.equal(looksLikePrompt(`You are a bot. ${'x'.repeat(largestLook)}`, 'a.txt'), null);
    const text = json({ model: 'm', messages: [message] });
    for (let i = 0; i < text.length; i += 1) assert.equal(looksLikePrompt(text.slice(0, i), 'a.json'), null);
  });

  it('takes no file of this repository’s sources for anything but code', () => {
    const root = path.join(__dirname, '../../..');
    for (const name of readdirSync(root).filter((one) => /\.(?:json|md|txt|mjs|ts)$/.test(one))) assert.equal(looksLikePrompt(readFileSync(path.join(root, name), 'utf8'), name), null, name);
  });
});
