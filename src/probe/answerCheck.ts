/** `slo.valid`: whether an answer is what was asked for, by a regular expression or a JSON schema. */
import { Validator } from '@cfworker/json-schema';
import type { Slo } from '../report/report';
import { PlanError } from './plan';

/** Why an answer fails its check, or null when it passes. */
export type AnswerCheck = (text: string) => string | null;

/** The check of an SLO, or null when it has none. Throws a PlanError for a pattern or schema that is none. */
export function createAnswerCheck(valid: Slo['valid']): AnswerCheck | null {
  const given: unknown = valid;
  if (given === undefined || given === null || !valid) return null;
  if (typeof given !== 'object') throw new PlanError('firstToken.slo.valid must be { "pattern": … } or { "schema": … }.', 'firstToken.slo');
  return 'pattern' in valid ? byPattern(valid.pattern) : bySchema(valid.schema);
}

function byPattern(pattern: string): AnswerCheck {
  if (typeof (pattern as unknown) !== 'string') throw new PlanError('firstToken.slo.valid.pattern must be text.', 'firstToken.slo');
  let expression: RegExp;
  try {
    expression = new RegExp(pattern, 'u');
  } catch (error) {
    throw new PlanError(`firstToken.slo.valid.pattern is not a regular expression: ${(error as Error).message}.`, 'firstToken.slo');
  }
  return (text) => (expression.test(text) ? null : 'It does not match firstToken.slo.valid.pattern.');
}

function bySchema(schema: unknown): AnswerCheck {
  if (schema === null || typeof schema !== 'object' || Array.isArray(schema)) throw new PlanError('firstToken.slo.valid.schema must be a JSON schema, an object such as { "type": "object" }.', 'firstToken.slo');
  let validator: Validator;
  try {
    validator = new Validator(schema, '2020-12');
    validator.validate({});
  } catch (error) {
    throw new PlanError(`firstToken.slo.valid.schema cannot be used: ${(error as Error).message}.`, 'firstToken.slo');
  }
  return (text) => {
    const json = jsonIn(text);
    if (json === undefined) return 'It is not JSON, which firstToken.slo.valid.schema asks for.';
    const { valid, errors } = validator.validate(json);
    const place = errors.at(-1);
    return valid ? null : `It breaks firstToken.slo.valid.schema at ${place?.instanceLocation ?? '#'} (${place?.keyword ?? 'schema'}).`;
  };
}

/** The JSON of an answer: bare, or alone in a fence as chat models like to send it. */
function jsonIn(text: string): unknown {
  const fenced = /^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/.exec(text);
  try {
    return JSON.parse(fenced?.[1] ?? text);
  } catch {
    return undefined;
  }
}
