import type { Endpoint } from '../probe/endpoint';

/** The demo endpoint: a simulated inference server in a process of its own, on loopback. */
export interface Demo {
  /** Null while it is not running. */
  readonly endpoint: Endpoint | null;
  /** Starts it unless it runs. */
  start(): Promise<Endpoint>;
  /** Starts it with these flags of the simulator, in place of the one that runs. */
  startWith(args: readonly string[]): Promise<Endpoint>;
  stop(): Promise<void>;
  dispose(): void;
}

interface Simulator {
  readonly url: string;
  stop(): Promise<void>;
}

/** `launch` starts the process; `describe` makes an endpoint of its URL. */
export function createDemo(parts: { readonly launch: (args: readonly string[]) => Promise<Simulator>; readonly describe: (url: string) => Endpoint; readonly changed: () => void }): Demo {
  let running: Simulator | null = null;
  let endpoint: Endpoint | null = null;
  let starting: Promise<Endpoint> | null = null;

  async function launch(args: readonly string[] = []): Promise<Endpoint> {
    const simulator = await parts.launch(args);
    running = simulator;
    endpoint = parts.describe(simulator.url);
    parts.changed();
    return endpoint;
  }

  async function stop(): Promise<void> {
    await starting?.catch(() => undefined);
    const simulator = running;
    running = null;
    endpoint = null;
    await simulator?.stop();
    if (simulator) parts.changed();
  }

  return {
    get endpoint() {
      return endpoint;
    },
    start() {
      if (endpoint) return Promise.resolve(endpoint);
      starting ??= launch().finally(() => (starting = null));
      return starting;
    },
    async startWith(args) {
      await stop();
      starting = launch(args).finally(() => (starting = null));
      return await starting;
    },
    stop,
    dispose: () => void stop(),
  };
}
