// The course of a release as pages are told it: one point for each number of judged attempts, bounded, and anew in each stage.
import { expect } from "chai";
import type { PageNews, ReleaseNow } from "../../../src/inspector/page-messages.ts";
import { Cluster } from "../../../src/inspector/page/known/cluster.ts";
import { POINTS_MAX, ReleaseCourse } from "../../../src/inspector/release-course.ts";
import { madeRelease } from "../../e2e/inspect/made-release.ts";

const { release: made } = madeRelease();

function releaseAt(judged: number, changes: Partial<ReleaseNow> = {}): ReleaseNow {
  if (made === null) throw new Error("there is a release");
  const stages = made.stages.map((stage) => ({ ...stage, judged }));
  return { ...made, stages, ...changes };
}

describe("the course of a release", () => {
  let course: ReleaseCourse;
  /** A page that was there from the beginning. */
  let page: Cluster;
  beforeEach(() => {
    [course, page] = [new ReleaseCourse(), new Cluster()];
  });

  function take(release: ReleaseNow | null): PageNews[] {
    const news = course.take(release);
    for (const each of news) page.take(each, 0);
    return news;
  }

  const judged = (): number[] => (page.release?.points ?? []).map((point) => point.judged);

  it("is nothing while there is none, and goes with it", () => {
    expect([take(null), course.whole()]).to.deep.equal([[], []]);
    take(releaseAt(3));
    expect(judged()).to.deep.equal([3]);
    take(null);
    expect([page.release, course.whole()]).to.deep.equal([undefined, []]);
  });

  it("has a point for each number of judged attempts, told once", () => {
    take(releaseAt(3));
    expect(take(releaseAt(3))).to.deep.equal([]);
    take(releaseAt(5));
    const held = take(releaseAt(5, { state: "held" }));
    expect(held).to.deep.include({
      kind: "release",
      release: releaseAt(5, { state: "held" }),
      anew: false,
      points: [],
    });
    expect(judged()).to.deep.equal([3, 5]);
    expect(page.release?.now.state).to.equal("held");
    const late = new Cluster();
    for (const each of course.whole()) late.take(each, 0);
    expect(late.release).to.deep.equal(page.release);
  });

  it("has both intervals, and the margin on the side on which the candidate is worse", () => {
    take(releaseAt(3));
    const [point] = page.release?.points ?? [];
    const [errors, score] = made?.metrics ?? [];
    expect(point?.metrics.map((metric) => metric?.margin)).to.deep.equal([
      (errors?.stable.value ?? NaN) + 0.05,
      (score?.stable.value ?? NaN) - 0.4,
    ]);
    const { lower, value, upper } = score?.candidate ?? {};
    expect(point?.metrics[1]?.candidate).to.deep.equal([lower, value, upper]);
    const none = { n: 0, value: null, lower: 0, upper: 1 };
    take(releaseAt(4, { metrics: (made?.metrics ?? []).map((metric) => ({ ...metric, stable: none })) }));
    expect(page.release?.points.at(-1)?.metrics).to.deep.equal([null, null]);
  });

  it("begins anew with each stage and each release", () => {
    take(releaseAt(3));
    take(releaseAt(1, { stage: 3 }));
    expect(judged()).to.deep.equal([1]);
    take(releaseAt(2, { release: "01KA2M9X3B7Q5W8E6R4T2Y1P0T" }));
    expect(judged()).to.deep.equal([2]);
  });

  it("stays bounded in a long stage, from its beginning to now", () => {
    for (let at = 1; at <= 40 * POINTS_MAX; at++) take(releaseAt(at));
    expect(judged().length).to.be.within(POINTS_MAX / 2, POINTS_MAX);
    expect(judged().at(-1)).to.equal(40 * POINTS_MAX);
    expect(judged()[0]).to.be.below(200);
    const steps = judged()
      .slice(1)
      .map((value, at) => value - (judged()[at] ?? 0));
    expect(steps.every((step) => step > 0)).to.equal(true);
    expect(course.whole()[0]?.points).to.deep.equal(page.release?.points);
  });
});
