/** What a message about a failure can offer to do. */
export type FailureAction = 'openSettings' | 'showLog' | 'addEndpoint' | 'setKey' | 'manageTrust' | 'startDemo';

/** Something went wrong that we know of: `message` says what happened and what to do, and is shown as it is. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly action: FailureAction | null;
  constructor(message: string, action: FailureAction | null = null) {
    super(message);
    this.action = action;
  }
}

/** The user closed a picker or answered no: nothing happened, nothing is shown. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled';
}

/** What an error means to the user. `PlanError` comes from the engine's own bundle, so it is told by name. */
export function classify(error: unknown): 'cancelled' | 'known' | 'bug' {
  if (!(error instanceof Error)) return 'bug';
  if (error.name === 'Cancelled' || error.name === 'Canceled' || error.name === 'AbortError') return 'cancelled';
  return error.name === 'Failure' || error.name === 'PlanError' ? 'known' : 'bug';
}
