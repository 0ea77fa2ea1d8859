/** Azure OpenAI: the deployment in the path, its own key header, and frames of its content filter. */
import { invalid } from './bodyFields';
import { bearer, header, Refused, sse, type Ask, type Face, type RawRequest, type Voice, type VoiceContext } from './face';
import { chatVoice, readChat } from './openaiChat';
import { refuseLikeOpenai } from './openaiErrors';

/** The Azure face, both URL styles. */
export const azure: Face = {
  id: 'azure',
  routes: [
    {
      path: /^\/openai\/deployments\/([^/]+)\/chat\/completions$/,
      read: (request) => {
        if (!request.url.searchParams.has('api-version')) throw new Refused({ status: 404, code: '404', message: 'Resource not found' });
        return { ...readChat(request), model: decodeURIComponent(request.match[1]!) };
      },
      voice: filtered,
    },
    {
      path: /^\/openai\/v1\/chat\/completions$/,
      read: (request) => {
        const ask = readChat(request);
        if (ask.model === null) throw invalid('model', 'Missing required parameter: model.');
        return ask;
      },
      voice: filtered,
    },
  ],
  key: (request: RawRequest) => header(request, 'api-key') ?? bearer(request),
  refuse: (problem) => {
    const reply = refuseLikeOpenai(problem);
    const wait = problem.retryAfter ?? null;
    return wait === null ? reply : { ...reply, headers: { ...reply.headers, 'retry-after-ms': String(Math.ceil(wait * 1000)) } };
  },
};

const clean = {
  hate: { filtered: false, severity: 'safe' },
  self_harm: { filtered: false, severity: 'safe' },
  sexual: { filtered: false, severity: 'safe' },
  violence: { filtered: false, severity: 'safe' },
};

function filtered(ask: Ask, request: RawRequest, context: VoiceContext): Voice {
  const voice = chatVoice(ask, request, context);
  const first = { choices: [], created: 0, id: '', model: '', object: '', prompt_filter_results: [{ prompt_index: 0, content_filter_results: clean }] };
  return {
    contentType: 'text/event-stream; charset=utf-8',
    headers: { 'apim-request-id': context.id, 'x-ms-region': 'Simulated' },
    open: (tally) => [sse(first), ...voice.open(tally)],
    say: (pieces, tally) => voice.say(pieces, tally),
    close: (end) => voice.close(end),
    fail: (problem) => voice.fail(problem),
    whole: (end) => voice.whole(end),
  };
}
