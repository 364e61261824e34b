"""Jobs: one declaration that is simulated, deployed and read alike from Go and Python.

go generate ./job makes this module of the table of fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Sequence

from ._declared import Declared


@dataclass(frozen=True, kw_only=True)
class Job(Declared):
    """A declared job.

    Attributes:
        name: Names the job, once per roster. Values: 1 to 60 letters, digits, dots,
            dashes and underscores. Required.
        about: Tells parties what they consent to. Values: up to 500 characters.
        rounds: Counts the steps of the model; each takes one private sum or two. Range: 1
            to 1,000,000. Default: required; 1 with queries.
        seed: Seeds the first model and the batches. Range: 0 to 2^63−1. Default: 0.
        parties: See :class:`Parties`.
        sum: See :class:`Sum`.
        privacy: See :class:`Privacy`.
        model: See :class:`Model`.
        training: See :class:`Training`.
        server: See :class:`Server`.
        metrics: See :class:`Metrics`.
        column: See :class:`Column`.
        query: See :class:`Query`.
        time: See :class:`Time`.
        world: See :class:`World`.
    """

    @dataclass(frozen=True, kw_only=True)
    class Parties:
        """Who takes part.

        Attributes:
            count: Counts the parties: party-1, party-2 and so on, unless a roster or
                groups name them. Range: 2 to 1,000,000. Default: the roster's, or the
                groups'.
            group: See :class:`Group`.
            roster: Names the file that lists the parties and their keys; a simulation
                needs none. Values: a file, relative to the job's.
            weights: Lists how often each party's vector counts in a sum, in the roster's
                order; all know the weights, and sum.max_weight caps them. Range: 1 to 65,536.
                Default: none: all count alike.
            drop_out: Bounds the share of a round's parties that may be missing from its
                sum. Range: 0 to below 1 (share of the parties). Default: 0.0.
            colluders: Bounds how many parties may pool what they know with the server.
                Range: 0 to parties.count − 2 (parties). Default: 0.
            per_round: Counts the parties of a round, drawn by a public rule. Range: 0, or
                2 to parties.count (parties). Default: 0: all.
            participations: Bounds how many rounds a party submits in, by its own ledger,
                no matter who draws them. Range: 0, or 1 to rounds (rounds). Default: 0: all.
            rows: Bounds how many rows of a party queries count; if it has more, the first
                ones count. With the record unit all count, and this is the most that an
                absent party may have. Range: 1 to 10,000,000 (rows). Default: 1; with the
                record unit privacy.records.
            hidden: Has each party toss a secret coin and take part with this probability;
                otherwise it sends zeros with its share of the noise. Range: 0 to 1
                (probability). Default: 0: all take part.
        """

        @dataclass(frozen=True, kw_only=True)
        class Group:
            """An element of ``parties.group``.

            Attributes:
                name: Names the parties of a group: clinic-1, clinic-2 and so on, or
                    clinic if it is one. Values: 1 to 60 letters, digits, dots, dashes and
                    underscores. Required.
                count: Counts them. Range: 1 to 1,000,000 (parties). Default: 1.
            """

            name: str
            count: int = 1

        count: int = 0
        group: Sequence[Group] = ()
        roster: str = ""
        weights: Sequence[int] = ()
        drop_out: float = 0.0
        colluders: int = 0
        per_round: int = 0
        participations: int = 0
        rows: int = 0
        hidden: float = 0.0

    @dataclass(frozen=True, kw_only=True)
    class Sum:
        """How sums are taken.

        Attributes:
            protocol: Names the protocol of the sums. Values: pairwise, oneshot. Default:
                "pairwise".
            adversary: Says what kind of server a sum withstands. Values: cheating,
                semi-malicious, curious. Default: "cheating".
            recovery: Lets sums recover from drop-outs even if parties.drop_out is 0.
                Default: false.
            classical: Leaves ML-KEM out of key exchange. Default: false.
            sparse: Has each party share keys with only some neighbours. Default: false.
            degree: Counts the neighbours of a party. Range: 2 to parties.count − 1
                (parties). Default: with sum.sparse the fewest for failure probabilities of
                2^−40 and 2^−30.
            committee: Names the file that lists the committee's members and their keys.
                Values: a file, relative to the job's.
            members: Counts the members of the committee of one-message sums. Range: 4 to
                255 (members). Default: 13.
            faults: Counts the members that may lie or stay silent. Range: 1 to a third of
                the others (members). Default: a sixth of them.
            colluders: Counts the members that may pool what they know with the server;
                those that lie or stay silent are among them. Range: sum.faults to sum.members
                − 2·sum.faults − 1 (members). Default: sum.faults.
            disputes: Counts the parties whose messages a member of the committee may
                refuse alone before the round goes on without it. Range: 1 to parties.count
                (parties). Default: a tenth of parties.count, divided by sum.faults.
            covered: Covers submissions until the committee agrees on who is in the sum.
                Default: false.
            bounded: Has each party prove that what it adds, with its noise, is no longer
                than honest vectors; a party that cannot is refused, with evidence. job check
                prints the factor. Default: false.
            groups: Deals the parties to this many groups in each round, and takes the
                median of the groups' means, so that a party that cheats spoils one group;
                have four for each party that may. Range: 0, or 2 to 1,024 (groups). Default:
                0: one sum of all.
            buffer: Has a round take this many submissions, while slower parties continue
                training. Range: 0, or 2 to parties.count (parties). Default: 0: all that
                arrive.
            stale: Bounds how many rounds earlier the work that is submitted may have
                begun. Range: 1 to 1,048,576 (rounds). Default: 10 with sum.buffer.
            max_weight: Weights means by rows; a party with more rows counts as having
                this many, and with parties.weights one with a larger weight. Range: 0 or more
                (rows). Default: 0: equal weights.
            range: Bounds a coordinate of a sum without noise. Range: above 0. Default:
                64.0.
            fraction_bits: Counts the fractional bits of a coordinate without noise.
                Range: 1 to 40 (bits). Default: 20.
        """

        protocol: Literal["pairwise", "oneshot"] = "pairwise"
        adversary: Literal["cheating", "semi-malicious", "curious"] = "cheating"
        recovery: bool = False
        classical: bool = False
        sparse: bool = False
        degree: int = 0
        committee: str = ""
        members: int = 13
        faults: int = 0
        colluders: int = 0
        disputes: int = 0
        covered: bool = False
        bounded: bool = False
        groups: int = 0
        buffer: int = 0
        stale: int = 0
        max_weight: int = 0
        range: float = 64.0
        fraction_bits: int = 20

    @dataclass(frozen=True, kw_only=True)
    class Privacy:
        """Which noise is in sums, and what it may spend of a party's privacy.

        Attributes:
            unit: Says whom epsilon protects: a party with all its data, or each record of
                a party. Values: party, record. Default: "party".
            group: Names whose records are protected together, such as patient: each row
                says whose it is. Values: 1 to 60 letters, digits, dots, dashes and
                underscores. Default: none: each record by itself.
            records: Counts the records of all parties, or with privacy.group the groups,
                as far as that is public. Range: 1 to 1,073,741,824 (records). Default: in a
                simulation as in the data.
            noise: Names the law of the noise. With key one-message sums have only the
                little that hides keys, which protects nobody's data, and no epsilon. Values:
                none, key, discrete-gaussian, discrete-laplace, skellam. Default: "none".
            noise_by: Says who adds the noise: each party a share, or each member of the
                committee of one-message sums; epsilon then rests on the honest members. With
                sum.bounded a party then hides no cheat in noise of its own. Values: parties,
                committee. Default: committee with sum.bounded, else parties.
            epsilon: Bounds how much privacy of each unit all rounds together spend,
                against the server. Range: above 0. Default: none: privacy.multiplier sets the
                noise.
            before: Names the file that records what the parties spent earlier, which
                counts. Values: a file, relative to the job's.
            study: Bounds the epsilon of this job and all that continue it, over the life
                of a roster. Range: above 0. Default: none: each job has its own budget.
            study_plan: Says how the rounds of a study's jobs add up, and so which job
                fits: gaussian, any without secret coins and discrete Laplace noise; equal,
                rounds as in the first. Values: gaussian, equal. Default: gaussian, or equal
                with such coins or noise.
            multiplier: Sets the standard deviation of a sum's noise, divided by the L2
                sensitivity. Range: above 0. Default: the least that stays within
                privacy.epsilon.
            delta: Lets epsilon fail with this probability. Range: above 0, below 1
                (probability). Default: 1e-05.
            clip: Clips what a unit adds to this L2 norm. Range: above 0 (of the vector).
                Default: none; required with noise; 1 with queries.
            clip_quantile: Has the clip follow this quantile of the norms. Range: 0 to
                below 1. Default: 0: a fixed clip.
            clip_rate: Sets how fast the clip follows. Range: above 0. Default: 0.2.
            submit_after: Has all parties submit this long after a round's model arrives,
                zeros if they have nothing. Range: above 0s, to 1000h. Default: at once;
                required with parties.hidden.
            factorise: Correlates the noise of this many rounds: a party trains in one of
                them, and submits a part of the result in each. Range: 0, or 2 to rounds
                (rounds). Default: 0: independent noise.
            sign_share: Gives the signs of a mask this share of the budget. Range: above
                0, below 1 (share). Default: 0.5.
            bits: Sets the width of a coordinate of a sum with noise. Range: 8 to 64
                (bits). Default: 32; with oneshot as many as its keys or bounds need; with
                queries 48.
        """

        unit: Literal["party", "record"] = "party"
        group: str = ""
        records: int = 0
        noise: Literal["none", "key", "discrete-gaussian", "discrete-laplace", "skellam"] = "none"
        noise_by: Literal["", "parties", "committee"] = ""
        epsilon: float = 0.0
        before: str = ""
        study: float = 0.0
        study_plan: Literal["", "gaussian", "equal"] = ""
        multiplier: float = 0.0
        delta: float = 1e-05
        clip: float = 0.0
        clip_quantile: float = 0.0
        clip_rate: float = 0.2
        submit_after: str = ""
        factorise: int = 0
        sign_share: float = 0.5
        bits: int = 0

    @dataclass(frozen=True, kw_only=True)
    class Model:
        """What is summed: the weights of a model, or a bare vector.

        Attributes:
            name: Names a model that the job trains itself. Values: logistic, softmax,
                scattering, mlp:N,…, lenet, lenet-norm. Default: none: the parties' programs
                bring vectors.
            features: Counts the numbers in a row. Range: 1 to 4,194,304. Default: in a
                simulation as in the data.
            classes: Counts the classes of rows. Range: 2 to 65,536. Default: in a
                simulation as in the data.
            length: Counts the numbers in a bare vector. Range: 1 to 134,217,728. Default:
                the model's, or the queries'.
            tensor: See :class:`Tensor`.
            file: Names the file that holds the first model, in safetensors or npz format.
                Values: a file, relative to the job's.
            init: Says how the tensors are initialised. Values: zeros, uniform. Default:
                "zeros".
            dtype: Sets the type that the model is sent in. Values: float32, float64.
                Default: float64 with model.name, else float32.
            personal: Keeps at each party the tensors whose names match these patterns.
                Values: 1 to 200 characters each. Default: none.
        """

        @dataclass(frozen=True, kw_only=True)
        class Tensor:
            """An element of ``model.tensor``.

            Attributes:
                name: Names a tensor. Values: 1 to 200 characters. Required.
                shape: Lists its dimensions. Range: 1 to 134,217,728. Required.
            """

            name: str
            shape: Sequence[int]

        name: str = ""
        features: int = 0
        classes: int = 0
        length: int = 0
        tensor: Sequence[Tensor] = ()
        file: str = ""
        init: Literal["zeros", "uniform"] = "zeros"
        dtype: Literal["", "float32", "float64"] = ""
        personal: Sequence[str] = ()

    @dataclass(frozen=True, kw_only=True)
    class Training:
        """What a party does in a round, where the job has a model that it trains itself.

        Attributes:
            epochs: Counts the passes over a party's rows in a round. Range: 1 to
                1,000,000 (passes). Default: 1, unless there are steps.
            steps: Counts gradient steps, instead of passes. Range: 1 to 1,000,000.
                Default: none.
            batch: Counts the rows of a step; with the record unit, those that a round
                expects from all parties. Range: 0 or more (rows). Default: 0: all.
            rate: Sets the learning rate of the parties. Range: above 0. Default: 0.1.
            momentum: Sets the momentum of local steps. Range: 0 to below 1. Default: 0.0.
            weight_decay: Sets the weight decay of local steps. Range: 0 or more. Default:
                0.0.
            lambda_: Sets the strength of L2 regularisation. Range: 0 or more. Default:
                0.0.
            rule: Names the rule of the parties. Values: fedavg, fedprox, scaffold, fedga.
                Default: "fedavg".
            mu: Sets the pull of fedprox towards the round's model. Range: above 0.
                Default: 0.1.
            beta: Sets the displacement of fedga. Range: above 0. Default: 0.1.
            variates: Says what scaffold's control variates are made from: steps is option
                II, gradient option I. Values: steps, gradient, fresh. Default: "steps".
            mask: Masks coordinates on which parties disagree. Values: none, soft, hard.
                Default: "none".
            mask_threshold: Sets the least agreement at which a coordinate counts in full.
                Range: above 0, to 1. Default: 0.4.
            submit: Says what parties submit. Values: updates, weights. Default:
                "updates".
            restart: Has parties train from the first model in each round. Default: false.
            standardise: Has this many first rounds sum the moments of scattering
                features, which later rounds are standardised by. Range: 0 or more (rounds).
                Default: 0.
        """

        epochs: int = 0
        steps: int = 0
        batch: int = 0
        rate: float = 0.1
        momentum: float = 0.0
        weight_decay: float = 0.0
        lambda_: float = 0.0
        rule: Literal["fedavg", "fedprox", "scaffold", "fedga"] = "fedavg"
        mu: float = 0.1
        beta: float = 0.1
        variates: Literal["steps", "gradient", "fresh"] = "steps"
        mask: Literal["none", "soft", "hard"] = "none"
        mask_threshold: float = 0.4
        submit: Literal["updates", "weights"] = "updates"
        restart: bool = False
        standardise: int = 0

    @dataclass(frozen=True, kw_only=True)
    class Server:
        """How a mean makes the next model.

        Attributes:
            rule: Names the rule that makes the next model from a mean. Values: fedavg,
                fedavgm, fedadagrad, fedadam, fedyogi. Default: "fedavg".
            rate: Sets the learning rate of the server. Range: above 0. Default: 1; 0.01
                with adaptive rules.
            beta1: Sets the decay of the first moment, or the momentum. Range: 0 to below
                1. Default: 0.0.
            beta2: Sets the decay of the second moment. Range: above 0, below 1. Default:
                0.99.
            tau: Sets the adaptivity: larger is closer to plain averaging. Range: above 0.
                Default: 0.001.
            tau_inside: Adds tau inside the square root, not outside. Default: false.
            average: Makes the last model the mean of the models of this share of the
                rounds, the last ones. Range: 0 to below 1 (share of the rounds). Default: 0:
                the last one.
        """

        rule: Literal["fedavg", "fedavgm", "fedadagrad", "fedadam", "fedyogi"] = "fedavg"
        rate: float = 0.0
        beta1: float = 0.0
        beta2: float = 0.99
        tau: float = 0.001
        tau_inside: bool = False
        average: float = 0.0

    @dataclass(frozen=True, kw_only=True)
    class Metrics:
        """Loss and accuracy, summed with the updates.

        Attributes:
            share: Gives loss and accuracy this share of the clip, to be summed with the
                updates. Range: 0 to below 1 (share). Default: 0: none are summed.
        """

        share: float = 0.0

    @dataclass(frozen=True, kw_only=True)
    class Column:
        """What the rows look like that parties bring to queries, a table for each column.

        Attributes:
            name: Names a column, as in the header of a party's rows. Values: 1 to 60
                letters, digits, dots, dashes and underscores. Required.
            type: Says what its values are: numbers, whole numbers, one of some words, or
                any word or text. Values: number, whole, category, text. Required.
            unit: Names the unit of its numbers, such as years. Values: up to 60
                characters.
            range: Bounds the numbers of a column: the least and the greatest. Default:
                none; required for numbers.
            outside: Says how a number outside the range, or a text longer than longest,
                is treated: it counts as the nearest inside, or as its first characters, or it
                does not count. Values: clip, drop. Default: "clip".
            categories: Lists the words of a category. Values: 1 to 200 characters each.
                Default: none; required for categories.
            longest: Bounds the length of a text, in UTF-8. Texts are compared in lower
                case, with one space for all white space between words and none around them.
                Range: 1 to 64 (bytes). Default: 16 for texts.
            blank: Lists what stands for a missing value, in addition to an empty one,
                such as a question mark. Values: 1 to 200 characters each. Default: none.
            missing: Says how a row with a missing or unknown value here is treated: the
                party's program refuses its rows, queries of the column leave the row out, or
                it counts as a category of its own. Values: refuse, drop, category. Default:
                "refuse".
        """

        name: str
        type: Literal["", "number", "whole", "category", "text"]
        unit: str = ""
        range: Sequence[float] = ()
        outside: Literal["clip", "drop"] = "clip"
        categories: Sequence[str] = ()
        longest: int = 0
        blank: Sequence[str] = ()
        missing: Literal["refuse", "drop", "category"] = "refuse"

    @dataclass(frozen=True, kw_only=True)
    class Query:
        """What is asked of the rows of all parties together, a table for each question.

        Attributes:
            name: Names a query, and its answer. Values: 1 to 60 letters, digits, dots,
                dashes and underscores. Required.
            kind: Says what is asked: the number of rows; the sum, the mean, the variance
                or quantiles of a column's numbers; the covariance or the correlation of two
                columns; how many rows are in each bin of a column, or of two; how many rows
                have not had an event yet, over time, and whether groups differ in that; how
                well scores predict an event, or how soon it comes; a linear model of a
                column; a logistic model of an event; Cox's model of the time until an event;
                a Poisson model of a column of counts; or which texts are the most frequent,
                and how many rows have each. Values: count, sum, mean, variance, covariance,
                correlation, histogram, crosstab, quantiles, survival, logrank, evaluation,
                cindex, linear, logistic, cox, poisson, heavy. Required.
            column: Names the column that the query is about. Values: 1 to 60 letters,
                digits, dots, dashes and underscores. Default: none; required except for a
                count and a logistic model.
            by: Names the other column of a crosstab, a covariance or a correlation, the
                scores of a C-index, or the groups of a log-rank test or an evaluation, or the
                strata of Cox's model. Values: 1 to 60 letters, digits, dots, dashes and
                underscores. Default: none; required for these, except for an evaluation of
                all rows together and Cox's model.
            on: Lists the columns that a model predicts from: columns of numbers, and
                except for a linear model also of words. Values: 1 to 200 characters each.
                Default: none; required for a model.
            event: Says which rows have had the event, in the form of where. In a survival
                curve, a log-rank test, a C-index and Cox's model it came at the time in the
                column, which for other rows is how long they are known about; a logistic
                model and scores predict it. Values: up to 500 characters. Default: none;
                required for survival curves, log-rank tests, evaluations, C-indices, Cox and
                logistic models.
            where: Limits the query to rows for which it holds: conditions such as age >=
                65, joined by and. Values: up to 500 characters. Default: none: all rows.
            bins: Cuts the range of a column of numbers into this many parts of equal
                width. Range: 2 to 65,536 (bins). Default: 10, or one for each of up to 20
                whole numbers; for curves over time 36, or one for each of up to 60; for an
                evaluation 32; for quantiles 256, and a power of two.
            by_bins: Cuts the range of the other column. Range: 2 to 65,536 (bins).
                Default: as bins.
            at: Lists the quantiles that are asked for, or the scores from which on an
                evaluation's rows count as predicted to have the event, in ascending order.
                Range: above 0, below 1. Default: 0.25, 0.5 and 0.75; for an evaluation 0.5.
            top: Asks for at most this many of the most frequent texts: fewer come out
                where noise hides the others. Range: 1 to 1000 (texts). Default: 20 for heavy.
            share: Gives the query this share of the budget: its noise is 1/√share times
                what it would be alone. Range: above 0, to 1 (share). Default: equal parts of
                what is left.
        """

        name: str
        kind: Literal[
            "", "count", "sum", "mean", "variance", "covariance", "correlation", "histogram",
            "crosstab", "quantiles", "survival", "logrank", "evaluation", "cindex", "linear",
            "logistic", "cox", "poisson", "heavy",
        ]
        column: str = ""
        by: str = ""
        on: Sequence[str] = ()
        event: str = ""
        where: str = ""
        bins: int = 0
        by_bins: int = 0
        at: Sequence[float] = ()
        top: int = 0
        share: float = 0.0

    @dataclass(frozen=True, kw_only=True)
    class Time:
        """When rounds are held. It may change while a job runs, and is in no digest.

        Attributes:
            start: Sets when the first round begins. Range: RFC 3339. Default: at once.
            pace: Sets the least time from the beginning of one round to that of the next.
                Range: 0s to 1000h. Default: 0s.
            step_time: Sets how long a step waits for connected parties, at least twice as
                long as the slowest takes; the first round, once enough parties are connected,
                waits as long for the others. Range: above 0s, to 1000h. Default: "30s".
            begin_with: Counts the parties that have to be connected before the first
                round begins, however long that takes; it then waits for no others. Range: 0,
                or the fewest of a sum to parties.count (parties). Default: 0: as many as a
                sum takes.
        """

        start: str = ""
        pace: str = ""
        step_time: str = "30s"
        begin_with: int = 0

    @dataclass(frozen=True, kw_only=True)
    class World:
        """What a simulation needs and a deployment has: data, places, links, mishaps. It is
        sent to nobody, and in no digest.

        Attributes:
            seed: Seeds rows, losses, delays and drop-outs. Range: 0 to 2^63−1. Default:
                seed.
            evaluate_every: Evaluates the model once in this many rounds. Range: 1 to
                1,000,000 (rounds). Default: 1.
            skip_clear: Skips what is compared: the same training in the clear, and those
                of each party alone. Default: false.
            data: See :class:`Data`.
            fidelity: Says how much of a sum is simulated. Values: messages, crowd, ring,
                clear. Default: "messages".
            topology: Says where sums are added up. Values: server, serverless. Default:
                "server".
            servers: Lists the places of the servers; if there are several, each sums its
                own parties. Values: 1 to 200 characters each. Default: one, at server.
            drop: Has this share of the parties drop out of each round. Range: 0 to below
                1 (share of the parties). Default: 0.0.
            malicious: Has this share of the parties cheat: each moves the sum against
                what it learnt, as far as the sum's range allows for all of them; with
                sum.bounded their proofs do not hold. Range: 0 to below 1 (share of the
                parties). Default: 0.0.
            lost_rounds: Loses this many rounds, drawn by seed: what parties submit in
                them is never summed. Range: 0 to 1,000,000 (rounds). Default: 0.
            tolerance: Lets a party leave once no weight differs from its own by more than
                this. Range: 0 or more. Default: 0: nobody leaves.
            reference: See :class:`Reference`.
            subtract_own: Has a party subtract its own noise from its copy of the model.
                Default: false.
            link: See :class:`Link`.
            party: See :class:`Party`.
            member: See :class:`Member`.
        """

        @dataclass(frozen=True, kw_only=True)
        class Data:
            """The table ``data``.

            Attributes:
                set: Names the data: a set, or the folder of one. Values: synthetic,
                    adult, digits, mnist, fashion-mnist, kddcup99 or a folder. Default:
                    "synthetic".
                rows: Counts the rows of a party; with draw, those of each round. Range: 1
                    to 10,000,000 (rows). Default: 200; for images all.
                all: Deals all rows of the set, as is always done with images. Default:
                    false.
                split: Says how the rows are dealt to the parties, once. Values: shuffled,
                    iid, label-skew, one-class, dirichlet-labels, dirichlet-quantity, colour,
                    rotation, label-colour, label-colour-skew, label-rotation,
                    label-rotation-skew, writers. Default: iid.
                concentration: Sets the concentration of the Dirichlet splits. Range:
                    above 0. Default: 0.5.
                draw: Says how rows are dealt in each round, instead of a split. Values:
                    fixed, new, growing, anew. Default: by the split.
                test: Keeps this share of the rows to evaluate models on, if a set has no
                    test rows. Range: above 0, below 1 (share of the rows). Default: 0.25.
                final: Judges models on the set's own test rows, once all else is chosen:
                    otherwise the last of the training rows, up to 10,000, judge, and train
                    nothing. Default: false.
                most: Uses this many rows of a set, drawn by seed. Range: 0 or more
                    (rows). Default: 0: all.
            """

            set: str = "synthetic"
            rows: int = 0
            all: bool = False
            split: Literal[
                "", "shuffled", "iid", "label-skew", "one-class", "dirichlet-labels",
                "dirichlet-quantity", "colour", "rotation", "label-colour", "label-colour-skew",
                "label-rotation", "label-rotation-skew", "writers",
            ] = ""
            concentration: float = 0.5
            draw: Literal["", "fixed", "new", "growing", "anew"] = ""
            test: float = 0.25
            final: bool = False
            most: int = 0

        @dataclass(frozen=True, kw_only=True)
        class Reference:
            """The table ``reference``.

            Attributes:
                law: Adds noise as a paper defines it, for comparison and never for
                    release. Values: staircase, continuous-laplace, continuous-gaussian.
                    Default: none.
                epsilon: Sets the epsilon of that noise. Range: above 0. Default: required
                    with a law.
                alpha: Sets the regularisation in its sensitivity. Range: above 0.
                    Default: training.lambda.
            """

            law: Literal["", "staircase", "continuous-laplace", "continuous-gaussian"] = ""
            epsilon: float = 0.0
            alpha: float = 0.0

        @dataclass(frozen=True, kw_only=True)
        class Link:
            """An element of ``world.link``.

            Attributes:
                between: Names the two places. Values: 1 to 200 characters each. Required.
                latency: Delays each message. Range: 0s to 1000h. Default: "0s".
                jitter: Delays each message further, by up to this. Range: 0s to 1000h.
                    Default: "0s".
                loss: Loses this share of the messages, which are sent again. Range: 0 to
                    0.99 (share). Default: 0.0.
                bandwidth: Carries this many bytes a second. Range: 0 or more (bytes/s).
                    Default: 0: no limit.
            """

            between: Sequence[str]
            latency: str = "0s"
            jitter: str = "0s"
            loss: float = 0.0
            bandwidth: float = 0.0

        @dataclass(frozen=True, kw_only=True)
        class Party:
            """An element of ``world.party``.

            Attributes:
                name: Names a party, or a group. Values: a group or a party. Required.
                place: Says where it is. Values: 1 to 200 characters. Default: its name.
                server: Says where its server is. Values: one of world.servers. Default:
                    the nearest.
                rows: Counts its rows. Range: 1 to 10,000,000 (rows). Default:
                    world.data.rows.
                compute: Lists the time of its work in each round; the last counts for all
                    later ones. Range: 0s to 1000h. Default: by the cost model.
                slow: Multiplies the time of its work. Range: above 0, to 1,000,000.
                    Default: 1.0.
                straggle: Slows it in this share of the rounds only. Range: 0 to 1 (share
                    of the rounds). Default: 0: in all.
                joins: Has it join in this round. Range: 1 to 1,000,000 (round). Default:
                    1.
                leaves: Has it leave after this round. Range: 0 or more (round). Default:
                    0: it stays.
                reference_epsilon: Sets its own epsilon of a reference law. Range: above
                    0. Default: world.reference.epsilon.
                crash: See :class:`Crash`.
            """

            @dataclass(frozen=True, kw_only=True)
            class Crash:
                """An element of ``crash``.

                Attributes:
                    round: Has it drop out of this round. Range: 1 to 1,000,000. Required.
                    at: Says before which of its messages it drops out. Values: begin,
                        submit, sign, reveal. Default: "submit".
                    back: Brings it back before this round. Range: 2 to 1,000,001 (round).
                        Default: the next.
                """

                round: int
                at: Literal["begin", "submit", "sign", "reveal"] = "submit"
                back: int = 0

            name: str
            place: str = ""
            server: str = ""
            rows: int = 0
            compute: Sequence[str] = ()
            slow: float = 1.0
            straggle: float = 0.0
            joins: int = 1
            leaves: int = 0
            reference_epsilon: float = 0.0
            crash: Sequence[Crash] = ()

        @dataclass(frozen=True, kw_only=True)
        class Member:
            """An element of ``world.member``.

            Attributes:
                name: Names a member, or all of them: member-1, or member. Values: member,
                    or one such as member-1. Required.
                place: Says where it is. Values: 1 to 200 characters. Default: with the
                    server.
                slow: Multiplies the time of its work. Range: above 0, to 1,000,000.
                    Default: 1.0.
                silent: Has it be present but never answer. Default: false.
                lies: Has it lie: it disputes every submission, or reveals a wrong part of
                    the key. Values: disputes, part. Default: it is honest.
                crash: See :class:`Crash`.
            """

            @dataclass(frozen=True, kw_only=True)
            class Crash:
                """An element of ``crash``.

                Attributes:
                    round: Has it drop out of this round. Range: 1 to 1,000,000. Required.
                    at: Says before which of its messages it drops out. Values: begin,
                        submit, sign, reveal. Default: "submit".
                    back: Brings it back before this round. Range: 2 to 1,000,001 (round).
                        Default: the next.
                """

                round: int
                at: Literal["begin", "submit", "sign", "reveal"] = "submit"
                back: int = 0

            name: str
            place: str = ""
            slow: float = 1.0
            silent: bool = False
            lies: Literal["", "disputes", "part"] = ""
            crash: Sequence[Crash] = ()

        seed: int = 0
        evaluate_every: int = 1
        skip_clear: bool = False
        data: Data = Data()
        fidelity: Literal["messages", "crowd", "ring", "clear"] = "messages"
        topology: Literal["server", "serverless"] = "server"
        servers: Sequence[str] = ()
        drop: float = 0.0
        malicious: float = 0.0
        lost_rounds: int = 0
        tolerance: float = 0.0
        reference: Reference = Reference()
        subtract_own: bool = False
        link: Sequence[Link] = ()
        party: Sequence[Party] = ()
        member: Sequence[Member] = ()

    name: str
    about: str = ""
    rounds: int = 0
    seed: int = 0
    parties: Parties = Parties()
    sum: Sum = Sum()
    privacy: Privacy = Privacy()
    model: Model = Model()
    training: Training = Training()
    server: Server = Server()
    metrics: Metrics = Metrics()
    column: Sequence[Column] = ()
    query: Sequence[Query] = ()
    time: Time = Time()
    world: World = World()
