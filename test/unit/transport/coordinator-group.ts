// Several coordinators of one run on free ports of loopback: real listeners under one CA, of which the test says which one leads.
// The others refuse every call with who leads, as candidates do.
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { create } from "@bufbuild/protobuf";
import { failure } from "../../../src/base/errors.ts";
import type { RunId } from "../../../src/base/ids.ts";
import { BeatStreamResponseSchema, HeartbeatService } from "../../../src/gen/rollout/v1/heartbeat_pb.ts";
import { OperatorService } from "../../../src/gen/rollout/v1/run_pb.ts";
import type { RunningServer } from "../../../src/transport/server.ts";
import { newRunId, TestAuthority } from "../../support/certificates.ts";
import { startTestServer } from "../../support/test-server.ts";

type Operator = ServiceImpl<typeof OperatorService>;

export interface GroupOptions {
  /** Handlers of the leader; the others refuse. */
  readonly operator?: Partial<Operator>;
  readonly retryAfterMs?: number;
}

/** One coordinator of a group. */
export class Member {
  server: RunningServer | undefined;
  readonly address: string;
  /** Names of the methods that were called, refused ones too. */
  readonly calls: string[] = [];
  /** The leader, by its word while it follows; undefined: it knows no leader. */
  hint: { readonly address: string; readonly epoch: number } | undefined;
  leads = false;
  readonly #retryAfterMs: number;

  constructor(server: RunningServer, retryAfterMs: number) {
    this.server = server;
    this.address = server.address;
    this.#retryAfterMs = retryAfterMs;
  }

  /** Throws while it follows. */
  demandLeader(method: string): void {
    this.calls.push(method);
    if (this.leads) return;
    const { address = "unknown", epoch = "unknown" } = this.hint ?? {};
    throw failure("not_leader", { address, epoch, retry_after_ms: this.#retryAfterMs });
  }

  /** As a process that is killed: its port refuses from now on. */
  async die(): Promise<void> {
    this.leads = false;
    await this.server?.close(0);
    this.server = undefined;
  }
}

export class CoordinatorGroup {
  readonly runId: RunId;
  readonly ca: TestAuthority;
  readonly members: Member[] = [];
  #epoch = 0;

  private constructor(runId: RunId, ca: TestAuthority) {
    this.runId = runId;
    this.ca = ca;
  }

  /** So many, of which none leads yet. */
  static async start(count: number, options: GroupOptions = {}): Promise<CoordinatorGroup> {
    const group = new CoordinatorGroup(newRunId(), await TestAuthority.make());
    for (let at = 0; at < count; at++) await group.#add(options);
    return group;
  }

  member(at: number): Member {
    const member = this.members[at];
    if (member === undefined) throw new Error(`there is no coordinator ${at}`);
    return member;
  }

  get addresses(): string[] {
    return this.members.map(({ address }) => address);
  }

  /** From now on this one leads, with the next epoch; the others name it, unless `isKnown` is false. */
  lead(at: number, isKnown = true): Member {
    const leader = this.member(at);
    const hint = { address: leader.address, epoch: ++this.#epoch };
    for (const member of this.members) {
      member.leads = member === leader;
      if (isKnown) member.hint = hint;
    }
    return leader;
  }

  async close(): Promise<void> {
    for (const member of this.members) await member.die();
  }

  async #add({ operator = {}, retryAfterMs = 0 }: GroupOptions): Promise<void> {
    const methods = Object.values(OperatorService.method);
    const server = await startTestServer(this, {
      access: {
        ...Object.fromEntries(
          methods.map(({ name }) => [`rollout.v1.OperatorService/${name}`, ["operator"] as const]),
        ),
        "rollout.v1.HeartbeatService/Beat": ["worker"],
        "rollout.v1.HeartbeatService/BeatStream": ["worker"],
      },
      routes: (router) =>
        router
          .service(
            OperatorService,
            guarded({ getRun: () => ({}), listWorkers: () => ({}), ...operator }, demand),
          )
          .service(HeartbeatService, {
            beat: () => {
              demand("beat");
              return {};
            },
            async *beatStream(requests) {
              demand("beatStream");
              for await (const { beat } of requests)
                yield create(BeatStreamResponseSchema, { ack: { sequence: beat?.sequence ?? 0n } });
            },
          }),
    });
    const member = new Member(server, retryAfterMs);
    this.members.push(member);
    function demand(method: string): void {
      member.demandLeader(method);
    }
  }
}

/** The same handlers, each behind the question whether this one leads. */
function guarded(handlers: Partial<Operator>, demand: (method: string) => void): Partial<Operator> {
  const all = Object.entries(handlers) as [string, (request: never, context: HandlerContext) => unknown][];
  const asked: Record<string, unknown> = {};
  for (const [name, handle] of all)
    asked[name] = (request: never, context: HandlerContext) => {
      demand(name);
      return handle(request, context);
    };
  return asked;
}
