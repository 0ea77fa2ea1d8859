import assert from 'node:assert/strict';
import { baseOf, detect, type Answer } from '../../../src/probe/detect';

/** A server that answers these paths and 404 elsewhere; every asked path is noted. */
function server(pages: Record<string, unknown>, options: { status?: number; header?: string } = {}) {
  const asked: string[] = [];
  const get = (url: string): Promise<Answer> => {
    const { pathname } = new URL(url);
    asked.push(pathname);
    const page = pages[pathname];
    const headers = options.header === undefined ? [] : [['Server', options.header] as const];
    if (page === undefined) return Promise.resolve({ status: options.status ?? 404, headers, text: '{"detail":"Not Found"}' });
    return Promise.resolve({ status: 200, headers, text: typeof page === 'string' ? page : JSON.stringify(page) });
  };
  return { get, asked };
}

const list = (owner: string, ...ids: string[]) => ({ object: 'list', data: ids.map((id) => ({ id, object: 'model', owned_by: owner, max_model_len: 8192 })) });

describe('detect', () => {
  it('strips API paths off a URL but keeps a prefix', () => {
    for (const url of ['http://h:1', 'http://h:1/', 'http://h:1/v1', 'http://h:1/v1/', 'http://h:1/v1/chat/completions', 'http://h:1/v1/messages', 'http://h:1/api/chat', 'http://h:1/generate_stream', 'http://h:1/completion', 'http://h:1/generate', 'http://h:1/v1/completions', 'http://h:1/v1/responses?x=1']) {
      assert.equal(baseOf(url), 'http://h:1', url);
    }
    assert.equal(baseOf('https://h/llm/v1/chat/completions'), 'https://h/llm');
    assert.equal(baseOf('https://api.groq.com/openai/v1'), 'https://api.groq.com/openai');
    assert.equal(baseOf('unix:/run/llm.sock:/v1'), 'unix:/run/llm.sock:');
    assert.equal(baseOf('unix:/run/llm.sock'), 'unix:/run/llm.sock:');
    assert.equal(baseOf('http://h/v2/models/ensemble/generate_stream'), 'http://h');
  });

  it('takes no text for a name that nobody could call by it, nor a number for a length that is none', async () => {
    for (const length of [-1, 0, 1.5, 1e300, '8192', null]) {
      const found = await detect('http://h', server({ '/v1/models': { data: [{ id: 'm'.repeat(100_000) }, { id: 'm', max_model_len: length }] } }).get);
      assert.deepEqual([found.models, found.maxModelLen], [['m'], null]);
      assert.ok(found.evidence.join('').length < 1000);
    }
  });

  const cases: [string, Record<string, unknown>, { api: string; server: string | null }][] = [
    ['vLLM', { '/version': { version: '0.11.2' }, '/v1/models': list('vllm', 'm') }, { api: 'openai-chat', server: 'vllm' }],
    ['SGLang', { '/get_server_info': { version: '0.5.1' }, '/v1/models': list('sglang', 'm') }, { api: 'openai-chat', server: 'sglang' }],
    ['SGLang without the OpenAI routes', { '/get_server_info': { version: '0.5.1' } }, { api: 'sglang', server: 'sglang' }],
    ['llama.cpp', { '/props': { default_generation_settings: {}, build_info: 'b1-abc' }, '/v1/models': list('llamacpp', 'tiny.gguf') }, { api: 'openai-chat', server: 'llamacpp' }],
    ['TGI', { '/info': { model_id: 'm', version: '3.3', max_total_tokens: 4096 }, '/v1/models': list('m', 'm') }, { api: 'openai-chat', server: 'tgi' }],
    ['TGI, old', { '/info': { model_id: 'm', version: '1.4', max_total_tokens: 4096 } }, { api: 'tgi', server: 'tgi' }],
    ['Ollama', { '/api/version': { version: '0.33.3' }, '/v1/models': list('library', 'llama3') }, { api: 'ollama', server: 'ollama' }],
    ['Triton', { '/v2': { name: 'triton', version: '2.50' } }, { api: 'triton', server: 'triton' }],
    ['LM Studio', { '/v1/models': list('organization_owner', 'qwen') }, { api: 'openai-chat', server: 'lmstudio' }],
    ['an Anthropic-shaped server', { '/v1/models': { data: [{ type: 'model', id: 'claude', display_name: 'C' }], has_more: false } }, { api: 'anthropic', server: 'anthropic' }],
    ['something unknown', { '/v1/models': list('acme', 'm') }, { api: 'openai-chat', server: null }],
  ];
  for (const [name, pages, expected] of cases) {
    it(`recognises ${name} and says how`, async () => {
      const found = await detect('http://127.0.0.1:8000/v1', server(pages).get);
      assert.equal(found.api, expected.api);
      assert.equal(found.server, expected.server);
      assert.ok(found.evidence.length > 0);
      assert.equal(found.unreachable, null);
    });
  }

  it('takes the API from a full path and the server from what answers', async () => {
    const found = await detect('http://127.0.0.1:8000/v1/messages', server({ '/version': { version: '0.12' }, '/v1/models': list('vllm', 'a', 'b') }).get);
    assert.equal(found.api, 'anthropic');
    assert.equal(found.server, 'vllm');
    assert.deepEqual(found.models, ['a', 'b']);
    assert.equal(found.maxModelLen, 8192);
    assert.equal(found.metricsUrl, 'http://127.0.0.1:8000/metrics');
  });

  it('knows hosted APIs by their host and asks them one thing only', async () => {
    const hosted = server({ '/v1/models': { data: [{ type: 'model', id: 'claude-x' }] } });
    const found = await detect('https://api.anthropic.com', hosted.get);
    assert.equal(found.api, 'anthropic');
    assert.deepEqual(hosted.asked, ['/v1/models']);
    assert.equal((await detect('https://r.openai.azure.com/openai/v1', server({}).get)).api, 'azure');
    assert.equal((await detect('https://bedrock-runtime.eu-west-1.amazonaws.com', server({}).get)).api, 'bedrock');
  });

  it('says that a key is needed, and what failed when nothing answers', async () => {
    assert.equal((await detect('http://127.0.0.1:1', server({}, { status: 401 }).get)).needsKey, true);
    const dead = await detect('http://127.0.0.1:1', () => Promise.reject(new Error('connection refused at 127.0.0.1:1')));
    assert.match(dead.unreachable ?? '', /refused/);
    assert.deepEqual(dead.evidence, [], 'what did not answer is taken for nothing');
    assert.equal(dead.api, 'openai-chat');
  });

  it('knows an Anthropic-shaped server by its refusal', async () => {
    const locked = (): Promise<Answer> => Promise.resolve({ status: 401, headers: [], text: '{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}' });
    const found = await detect('http://127.0.0.1:1', locked);
    assert.equal(found.api, 'anthropic');
    assert.equal(found.needsKey, true);
  });

  it('is not fooled by HTML or arrays that answer every path', async () => {
    const everything = (): Promise<Answer> => Promise.resolve({ status: 200, headers: [], text: '<html>hi</html>' });
    assert.equal((await detect('http://127.0.0.1:1', everything)).server, null);
    const arrays = (): Promise<Answer> => Promise.resolve({ status: 200, headers: [], text: '[1]' });
    assert.equal((await detect('http://127.0.0.1:1', arrays)).server, null);
  });
});
