"""What scikit-learn says of rounded scores, for TestSklearn: lines score,outcome in, measures out."""
import sys

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, confusion_matrix, precision_score, roc_auc_score

rows = np.loadtxt(sys.stdin, delimiter=",")
bins, cut = 32, 0.5
place = np.arcsin(np.sqrt(rows[:, 0])) * 2 / np.pi
score = np.sin((np.minimum((place * bins).astype(int), bins - 1) + 0.5) / bins * np.pi / 2) ** 2
y = rows[:, 1].astype(int)
fit = LogisticRegression(penalty=None, tol=1e-12, max_iter=10000, solver="newton-cholesky").fit(
    np.log(score / (1 - score))[:, None], y)
tn, fp, fn, tp = confusion_matrix(y, score >= cut).ravel()
for name, value in {
    "AUC": roc_auc_score(y, score),
    "Brier score": brier_score_loss(y, score),
    "calibration intercept": fit.intercept_[0],
    "calibration slope": fit.coef_[0, 0],
    "share with the event": y.mean(),
    "accuracy at 0.5": (tp + tn) / len(y),
    "sensitivity at 0.5": tp / (tp + fn),
    "specificity at 0.5": tn / (tn + fp),
    "precision at 0.5": precision_score(y, score >= cut),
}.items():
    print(f"{name},{value:.17g}")
