import { jsonReply, retryHeaders, type Problem, type Reply } from './face';

/** The `{"error": {message, type, param, code}}` of OpenAI and of the servers that follow it. */
export function openaiError(problem: Problem): Record<string, unknown> {
  return { error: { message: problem.message, type: errorType(problem), param: problem.field ?? null, code: problem.code } };
}

/** A refusal with that body. */
export function refuseLikeOpenai(problem: Problem): Reply {
  return jsonReply(problem.status, openaiError(problem), retryHeaders(problem));
}

function errorType({ status }: Problem): string {
  if (status === 401 || status === 403) return 'authentication_error';
  if (status === 404) return 'NotFoundError';
  if (status === 429) return 'rate_limit_error';
  return status >= 500 ? 'server_error' : 'BadRequestError';
}
